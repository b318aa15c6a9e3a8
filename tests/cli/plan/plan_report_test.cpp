#include "cli/plan/plan_report.h"

#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace simile::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t kOneGiB = std::uint64_t{1} << 30;

PlanReport MakeReport(std::uint64_t rows, std::uint32_t dim, std::uint64_t device_bytes) {
  PlannedCollection collection;
  collection.name = "films";
  collection.rows = rows;
  collection.dim = dim;
  engine::DataBytes data;
  data.vectors = rows * PaddedDim(dim) * sizeof(float);
  data.payload = rows * 100;
  backend::cpu::Int8Options options = backend::cpu::OptionsFor("portable");
  options.threads = 2;
  PlanReport report;
  report.collections = {PlanCollection(collection, data, options)};
  backend::GpuOptions gpu;
  gpu.int8_rows = false;  // as on a T4
  report.memory_fraction = gpu.memory_fraction;
  report.reserve_bytes = gpu.reserve_bytes;
  if (device_bytes > 0) {
    report.device = PlanDevice(report.collections, gpu, device_bytes);
    report.choices = Choices(report.collections, *report.device, gpu);
    report.card = "NVIDIA T4";
    report.card_origin = "gpu.device 0";
    report.device_speed = {{320e9, 32.5e12, {}}, 32.5e12, 75};
    report.known_card = "T4";
    report.device_speed_from = "data sheet of T4";
  }
  report.no_device_reason = "no NVIDIA driver on this machine (libcuda.so.1 not found)";
  report.host = PlanHost(report.collections, 0);
  report.host_available_bytes = 64 * kOneGiB;
  report.host_available_from = "nine tenths of the 71.1 GiB available on the machine";
  report.batch_max = 1'024;
  report.k = 10;
  report.k_max = 10'000;
  report.threads = 2;
  report.host_speed = {20e9, 1e12, {{32 << 10, 181.3e9}, {256 << 20, 20e9}}};
  report.host_speed_from = "measured on 2 threads";
  report.price_per_hour = 1.2;
  return report;
}

TEST(PlanReportTest, FitsEightyColumns) {
  for (const std::uint64_t device : {std::uint64_t{0}, kOneGiB, 16 * kOneGiB}) {
    PlanReport report = MakeReport(10'000'000, 768, device);
    report.collections[0].name = "books-and-co";
    report.int8_is_assumed = true;
    std::istringstream lines(PlanText(report, Terminal{}));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(PlanReportTest, SaysWhatDoesNotFitAndWhatHelps) {
  const PlanReport report = MakeReport(10'000'000, 768, 16 * kOneGiB);
  EXPECT_FALSE(Fits(report));
  const std::string text = PlanText(report, Terminal{});
  EXPECT_THAT(text, HasSubstr("films  10,000,000 vectors x 768 (cosine)\n"));
  EXPECT_THAT(
      text,
      HasSubstr("  does not fit: 16.00 GiB x 0.80 - 1.00 GiB reserved = 11.80 GiB may be taken\n"
                "  (NVIDIA T4, gpu.device 0)\n"
                "  choices  "));
  EXPECT_THAT(text, HasSubstr("2 servers with such a card"));
  EXPECT_THAT(text, Not(HasSubstr(" gpu ")));
}

TEST(PlanReportTest, SaysThatItFits) {
  const PlanReport report = MakeReport(100'000, 384, 16 * kOneGiB);
  EXPECT_TRUE(Fits(report));
  const std::string text = PlanText(report, Terminal{});
  EXPECT_THAT(text, HasSubstr("  fits: 64.00 GiB may be taken\n  (nine tenths"));
  EXPECT_THAT(text, HasSubstr("  fits: 16.00 GiB x 0.80"));
  EXPECT_THAT(text, HasSubstr("  cpu: 20.0 GB/s from memory, 181.3 GB/s from caches, 1.00 T "
                              "multiply-adds/s\n  (measured on 2 threads)\n"));
  EXPECT_THAT(text, HasSubstr("  gpu: 320.0 GB/s from memory, caches not counted, 32.5 T "
                              "multiply-adds/s\n  (data sheet of T4)\n"));
}

TEST(PlanReportTest, WritesSmallCostsWithoutExponents) {
  PlanReport report = MakeReport(1'000, 64, 16 * kOneGiB);
  report.device_speed.limits.products_per_s = 1e15;
  EXPECT_THAT(PlanText(report, Terminal{}), Not(HasSubstr("e-")));
}

TEST(PlanReportTest, SaysWhyNoCardIsPlanned) {
  EXPECT_THAT(PlanText(MakeReport(100'000, 384, 0), Terminal{}),
              HasSubstr("\nno card planned: no NVIDIA driver on this machine (libcuda.so.1 not "
                        "found)\n  (--card T4 plans for one)\n"));
}

TEST(PlanReportTest, KnowsNothingOfAHostThatIsNotNamed) {
  PlanReport report = MakeReport(100'000, 384, 0);
  report.host_available_bytes.reset();
  EXPECT_TRUE(Fits(report));
  EXPECT_THAT(PlanText(report, Terminal{}),
              HasSubstr("  how much may be taken is not known; give --host-memory\n"));
  const auto said = nlohmann::json::parse(PlanJson(report));
  EXPECT_EQ(said["host"]["available"], nullptr);
  EXPECT_EQ(said["host"]["fits"], nullptr);
}

TEST(PlanReportTest, AReloadThatIsRefusedDoesNotFit) {
  PlanReport report = MakeReport(4'000'000, 768, 16 * kOneGiB);
  ASSERT_TRUE(report.device->fits());
  ASSERT_FALSE(report.device->shares[0].reload_fits);
  EXPECT_TRUE(Fits(report)) << "the CPU takes over";
  report.full_goes_to_cpu = false;
  EXPECT_FALSE(Fits(report));
  EXPECT_THAT(PlanText(report, Terminal{}), HasSubstr("a reload is refused"));
}

TEST(PlanReportTest, GivesProgramsNumbers) {
  const auto said = nlohmann::json::parse(PlanJson(MakeReport(100'000, 384, 16 * kOneGiB)));
  EXPECT_EQ(said["fits"], true);
  const auto& films = said["collections"][0];
  EXPECT_EQ(films["host"]["vectors"], 100'000 * 384 * 4);
  EXPECT_EQ(films["device"]["fp16_rows"], 100'000 * 384 * 2);
  EXPECT_EQ(said["device"]["rest"], films["device"]["rest"].get<std::uint64_t>() +
                                        said["device"]["workspace"].get<std::uint64_t>());
  // Of one query and of the largest batch the floor, on the card the engine, one caller; of one
  // query 64 callers.
  EXPECT_EQ(films["times"].size(), 12U);
  EXPECT_EQ(said["device"]["capability"], 75);
  EXPECT_EQ(said["limits"]["batch"], 1'024);
  const auto without = nlohmann::json::parse(PlanJson(MakeReport(100'000, 384, 0)));
  EXPECT_EQ(without["device"], nullptr);
}

TEST(PlanReportTest, SaysOfEachFigureWhatItIs) {
  const PlanReport report = MakeReport(100'000, 384, 16 * kOneGiB);
  std::vector<std::string> gpu, cpu;
  for (const PlanFigure& figure : MakeFigures(report, 0)) {
    (figure.where == "gpu" ? gpu : cpu)
        .push_back(fmt::format("{} {} {}", figure.batch, figure.what, BasisText(figure.basis)));
  }
  EXPECT_THAT(gpu, ElementsAre("1 reading floor", "1 engine scaled", "1 one caller scaled",
                               "1 64 callers scaled", "1024 multiplying floor",
                               "1024 engine scaled", "1024 one caller scaled"));
  EXPECT_THAT(cpu, ElementsAre("1 reading floor", "1 one caller floor", "1 64 callers floor",
                               "1024 multiplying floor", "1024 one caller floor"));
  EXPECT_THAT(PlanText(report, Terminal{}),
              HasSubstr("  scaled: from what was measured on the H200, with the host's share"));
}

TEST(PlanReportTest, PricesWhatAServerServes) {
  const PlanReport report = MakeReport(100'000, 384, 16 * kOneGiB);
  for (const PlanFigure& figure : MakeFigures(report, 0)) {
    EXPECT_EQ(figure.is_served, figure.what == "64 callers" ||
                                    (figure.what == "one caller" && figure.batch == 1'024));
    if (figure.is_served) {
      EXPECT_LE(figure.queries_per_s, 90'000) << "the server's share is in it";
      EXPECT_DOUBLE_EQ(figure.CostOfMillion(3.6), 1e3 / figure.queries_per_s);
    }
  }
}

}  // namespace
}  // namespace simile::cli
