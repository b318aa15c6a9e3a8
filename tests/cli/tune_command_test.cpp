#include "cli/tune_command.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/exit_code.h"
#include "cli/interrupt_message.h"
#include "files/scratch_folder.h"

namespace simile::cli {
namespace {

using app::TuneConclusion;
using backend::cpu::TuningValue;
using backend::cpu::TuningValues;
using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

const TuningValue* Value(std::string_view name) {
  return &*std::ranges::find(TuningValues(), name, &TuningValue::name);
}

app::TuneReport Report() {
  app::TuneReport report;
  report.key = {"Ann's processor", 2, "amx+avx512vnni"};
  report.collections = {{"films", 5'000, 5'000 * 384, 5'000, 384},
                        {"songs", 1'000'000, 1'000'000 * 768, 9'000'000, 768}};
  report.tuning.parameters = {
      {nullptr, 2, 2, TuneConclusion::kFixed, std::nullopt, {}},
      {Value("block_bytes"),
       196'608,
       262'144,
       TuneConclusion::kChanged,
       backend::cpu::RatioRange{0.8, 0.75, 0.9},
       {0, 64, 0}},
      {Value("large_batch_min"),
       5,
       65'536,
       TuneConclusion::kChanged,
       backend::cpu::RatioRange{0.95, 0.94, 0.96},
       {1, 16, 0}},
      {Value("gather_share"), 16, 16, TuneConclusion::kNoneBetter, std::nullopt, {}}};
  report.tuning.workloads = {{{0, 1, 0}, 0.001, 0.0005, backend::cpu::RatioRange{0.5, 0.4, 0.8}},
                             {{0, 64, 0}, 0.01, 0.01, backend::cpu::RatioRange{1, 0.99, 1.01}},
                             {{0, 1'024, 0}, 0.2, 0.16, std::nullopt},
                             {{0, 1, 20}, 0, 0, std::nullopt}};
  report.answers_compared = 2'000;
  report.written = true;
  report.index_bytes_before = 64U << 20;
  report.index_bytes_after = 96U << 20;
  report.tuning.other_load = 0.05;
  return report;
}

const TuneSetting kToCache{1'024, 0, "/home/ann/.cache/simile/cpu-tuning.json", "default (HOME)"};

TEST(TuneCommandTest, ShowsEveryNumberBeforeAndAfter) {
  const std::string text = TuneText(Report(), kToCache, Terminal{});
  EXPECT_THAT(text, HasSubstr("Ann's processor, 2 threads, amx+avx512vnni\n"));
  EXPECT_THAT(text, HasSubstr("films: 5,000 vectors x 384\n"));
  EXPECT_THAT(text, HasSubstr("songs: 9,000,000 vectors x 768, of which the first 1,000,000 were "
                              "measured\n"));
  EXPECT_THAT(text, ContainsRegex("threads +2 +2 +set by backend.threads\n"));
  EXPECT_THAT(text, ContainsRegex("block_bytes +196,608 +262,144 +[+]25.0 % [(][+]11.1 to "
                                  "[+]33.3[)]: films, 64 queries\n"));
  EXPECT_THAT(text, ContainsRegex("large_batch_min +5 +never +[+]5.3 %"));
  EXPECT_THAT(text, ContainsRegex("gather_share +16 +16 +no other is clearly better\n"));
}

TEST(TuneCommandTest, ShowsEveryKindOfSearchBeforeAndAfter) {
  const std::string text = TuneText(Report(), kToCache, Terminal{});
  EXPECT_THAT(text, ContainsRegex("films, 1 query +1,000 +2,000 +[+]100.0 % [(][+]25.0 to "
                                  "[+]150.0[)]\n"));
  EXPECT_THAT(text, ContainsRegex("films, 64 queries +6,400 +6,400 +[+]0.0 % [(]-1.0 to "
                                  "[+]1.0[)]\n"));
  EXPECT_THAT(text, ContainsRegex("films, 1 query, one row in 20 passes +- +- +not measured in the "
                                  "time\n"));
}

TEST(TuneCommandTest, ShowsTheRatesOfAGpuAndThePassesItChose) {
  app::TuneReport report = Report();
  EXPECT_THAT(TuneText(report, kToCache, Terminal{}), Not(HasSubstr("GPU")));
  report.gpu.why_not = "no NVIDIA driver on this machine";
  EXPECT_THAT(TuneText(report, kToCache, Terminal{}),
              HasSubstr("no GPU is measured: no NVIDIA driver on this machine\n"));

  report.gpu = {"NVIDIA H200", "", {}};
  app::GpuCollectionRates films;
  films.name = "films";
  films.rates = {{1, 40e-6, "int8-scan-kept-sm90"}, {256, 160e-6, "fp16-gemm-sm90"}};
  films.measured = backend::MeasuredChoices{
      {"NVIDIA H200", 5'120, 384, true},
      {{{1, 32, "int8_scan_kept", backend::FinishForm::kSteps, true, 0, 1, 25.6e-6, 28.4e-6},
        {32, 32, "", backend::FinishForm::kSteps, false, 0, 1, 41e-6, 41e-6},
        {1'024, 32, "gemm_topk_fp16", backend::FinishForm::kOneLaunch, false, 0, 4, 205e-6,
         210e-6}},
       64,
       256}};
  app::GpuCollectionRates songs;
  songs.name = "songs";
  songs.why_not = "the collection takes 9.0 GiB";
  report.gpu.collections = {films, songs};
  const std::string text = TuneText(report, kToCache, Terminal{});
  EXPECT_THAT(text, HasSubstr("\nNVIDIA H200\n"));
  EXPECT_THAT(text, ContainsRegex(" 1 +25,000 +0.040 +int8-scan-kept-sm90\n"));
  EXPECT_THAT(text, ContainsRegex(" 256 +1,600,000 +0.160 +fp16-gemm-sm90\n"));
  EXPECT_THAT(text, HasSubstr("films: passes that are faster than the rules' pass, in 2 of 3 "
                              "classes\n"));
  EXPECT_THAT(text, ContainsRegex("1 +32 +25.6 +28.4 +int8_scan_kept, finish in steps, mapped\n"));
  EXPECT_THAT(
      text, ContainsRegex("1,024 +32 +205.0 +210.0 +gemm_topk_fp16, finish in one launch, copied, "
                          "tiles 4 times as long\n"));
  EXPECT_THAT(text, HasSubstr("a pass over films takes 256 queries from the next load on\n"));
  EXPECT_THAT(text, HasSubstr("songs is not on the GPU: the collection takes 9.0 GiB\n"));
  const json gpu = json::parse(TuneJson(report, kToCache))["gpu"];
  report.gpu.collections[0].measured->choices.passes = {
      {32, 32, "", backend::FinishForm::kSteps, false, 0, 1, 41e-6, 41e-6}};
  EXPECT_THAT(TuneText(report, kToCache, Terminal{}),
              HasSubstr("films: the rules' pass is the fastest in each of 1 classes of batches\n"));
  EXPECT_EQ(gpu["device"], "NVIDIA H200");
  EXPECT_EQ(gpu["collections"][0]["rates"][1]["queries"], 256);
  EXPECT_EQ(gpu["collections"][0]["sufficient_batch"], 256);
  EXPECT_EQ(gpu["collections"][0]["passes"].size(), 3U);
}

TEST(TuneCommandTest, SaysWhatFollows) {
  const std::string text = TuneText(Report(), kToCache, Terminal{});
  EXPECT_THAT(text, AllOf(HasSubstr("2,000 answers compared before and after: the same bits\n"),
                          HasSubstr("the indexes take 96.0 MiB instead of 64.0 MiB\n"),
                          HasSubstr("limits.batch_queries_max is 1,024: batches of 64 reach 100 % "
                                    "of the rate\n  of 1,024, and take 10.00 ms instead of 160.00 "
                                    "ms (films);\n"),
                          EndsWith("wrote /home/ann/.cache/simile/cpu-tuning.json\n"
                                   "  each `simile serve` of this user here\n"
                                   "  starts with it; restart those that run\n")));
}

TEST(TuneCommandTest, SaysWhichServersStartWithTheFile) {
  const auto text = [](const TuneSetting& setting) {
    return TuneText(Report(), setting, Terminal{});
  };
  EXPECT_THAT(text({1'024, 2, "/t.json", "default (HOME)"}),
              HasSubstr("  each `simile serve --threads 2` of this user here\n"));
  EXPECT_THAT(text({1'024, 0, "/t.json", "file /etc/simile.json"}),
              HasSubstr("  each `simile serve` with this backend.tuning_cache (file "
                        "/etc/simile.json)\n"));
  EXPECT_THAT(text({1'024, 2, "/srv/my tuning.json", ""}),
              EndsWith("wrote /srv/my tuning.json\n"
                       "  serve starts with it where backend.tuning_cache names it:\n"
                       "  SIMILE_BACKEND_TUNING_CACHE=\"/srv/my tuning.json\" simile serve "
                       "--threads 2 ...\n"));
}

TEST(TuneCommandTest, SaysWhenNothingWasWritten) {
  EXPECT_THAT(TuneText(Report(), {1'024, 0, "", ""}, Terminal{}),
              EndsWith("nothing was written (--dry-run)\n"));
  app::TuneReport report = Report();
  report.written = false;
  EXPECT_THAT(TuneText(report, kToCache, Terminal{}),
              EndsWith("/home/ann/.cache/simile/cpu-tuning.json holds all of it already\n"));
  EXPECT_EQ(json::parse(TuneJson(report, kToCache))["file"], nullptr);
}

// Rates that were measured one after the other then say little about the batch.
TEST(TuneCommandTest, SaysWhenTheMachineWasBusy) {
  app::TuneReport report = Report();
  report.tuning.other_load = 0.41;
  const std::string text = TuneText(report, kToCache, Terminal{});
  EXPECT_THAT(text, HasSubstr("nothing is changed: other programs took 41 % of the processors "
                              "meanwhile"));
  EXPECT_THAT(text, Not(HasSubstr("limits.batch_queries_max")));
  EXPECT_EQ(json::parse(TuneJson(report, kToCache))["batch_queries_max"]["sufficient"], nullptr);
}

TEST(TuneCommandTest, SaysWhenNothingIsBetter) {
  app::TuneReport report = Report();
  report.tuning.parameters.resize(1);
  report.index_bytes_after = report.index_bytes_before;
  const std::string text = TuneText(report, kToCache, Terminal{});
  EXPECT_THAT(text,
              HasSubstr("nothing is changed: what was in force is the best that was found\n"));
  for (const char* other : {"the same bits", "the indexes take", "other programs"}) {
    EXPECT_THAT(text, Not(HasSubstr(other)));
  }
  EXPECT_THAT(text, ContainsRegex("films, 1 query +1,000\n"));
}

// What was not measured may be better than what is in force.
TEST(TuneCommandTest, CountsWhatWasNotMeasured) {
  app::TuneReport report = Report();
  report.tuning.parameters[3].conclusion = TuneConclusion::kNoTime;
  const std::string no_time = "1 of 4 parameters had no time; give a longer --duration\n";
  EXPECT_THAT(TuneText(report, kToCache, Terminal{}), HasSubstr("the same bits\n" + no_time));
  for (app::TunedParameter& each : report.tuning.parameters) {
    each.conclusion = TuneConclusion::kNoTime;
  }
  const std::string text = TuneText(report, kToCache, Terminal{});
  EXPECT_THAT(text, HasSubstr("nothing is changed: 4 of 4 parameters had no time"));
  EXPECT_THAT(text, Not(HasSubstr("the best that was found")));
}

// Only where the greatest value means it.
TEST(TuneCommandTest, ShowsNeverForNothingElse) {
  app::TuneReport report;
  for (const TuningValue& value : TuningValues()) {
    report.tuning.parameters.push_back(
        {&value, value.min, value.max, TuneConclusion::kChanged, std::nullopt, {}});
  }
  const std::string text = TuneText(report, kToCache, Terminal{});
  for (const char* row :
       {"block_bytes +131,072 +1,048,576", "large_batch_min +5 +never", "gather_share +4 +256",
        "scan_rows_max +256 +16,384", "int4_from_code_bytes +1,048,576 +never",
        "queries_of_thread_min +16 +never"}) {
    EXPECT_THAT(text, ContainsRegex(row));
  }
}

TEST(TuneCommandTest, FitsEightyColumnsOnATerminal) {
  const std::string text = TuneText(Report(), kToCache, {true, false, 80});
  std::size_t start = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    EXPECT_LE(end - start, 80U) << text.substr(start, end - start);
    start = end + 1;
  }
}

TEST(TuneCommandTest, PrintsTheSameAsJson) {
  const json report = json::parse(TuneJson(Report(), kToCache));
  EXPECT_EQ(report["machine"]["kernels"], "amx+avx512vnni");
  EXPECT_EQ(report["collections"][1]["measured_rows"], 1'000'000);
  EXPECT_EQ(report["parameters"][1]["conclusion"], "changed");
  EXPECT_DOUBLE_EQ(report["parameters"][1]["gain"]["median"].get<double>(), 0.25);
  EXPECT_EQ(report["parameters"][1]["measured_on"], "films, 64 queries");
  EXPECT_EQ(report["parameters"][3]["gain"], nullptr);
  EXPECT_EQ(report["searches"][3]["before_s"], nullptr);
  EXPECT_EQ(report["batch_queries_max"], json({{"now", 1'024}, {"sufficient", 64}}));
  EXPECT_EQ(report["file"], "/home/ann/.cache/simile/cpu-tuning.json");
}

TEST(TuneCommandTest, CtrlCLeavesTheFileAsItWas) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const ScratchFolder scratch;
  app::Config config;
  config.collections = {{"films", SIMILE_SOURCE_DIR "/examples/films"}};
  config.tuning_cache = scratch.path() / "cpu-tuning.json";
  const std::string before = R"({"simile_cpu_tuning": 1, "machines": []})";
  scratch.Write("cpu-tuning.json", before);
  EXPECT_EXIT(
      {
        InterruptMessage interrupt;
        interrupt.Set("stopped");
        app::TuneOptions options;
        options.output = config.tuning_cache;
        const auto report =
            app::TuneCollections(config, options, RealClock(), [](double, const std::string& what) {
              if (!what.starts_with("block_bytes")) return;
              kill(getpid(), SIGINT);
              while (true) pause();
            });
      },
      testing::ExitedWithCode(kInterrupted), "stopped\n");
  std::ifstream file(config.tuning_cache);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), before);
}

}  // namespace
}  // namespace simile::cli
