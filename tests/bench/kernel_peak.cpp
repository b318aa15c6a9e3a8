// The int8 pass with its gate, from the caches, against a loop of the same instruction on registers
// alone, on all threads: which share of the processor's arithmetic the search uses. Random codes,
// because zeros would flatter it. The pass's hits are compared with plain arithmetic before
// anything is printed.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "backend/cpu/int8_kernels.h"
#include "backend/cpu/processor.h"
#include "backend/cpu/thread_pool.h"
#include "base/threads.h"
#include "bench/kernel_block.h"
#include "bench/register_peak.h"
#include "bench/timing.h"
#include "certificate/seeded_random.h"

namespace simile::bench {
namespace {

using backend::cpu::Int8Kernel;
using Json = nlohmann::ordered_json;

struct Options {
  KernelBlock::Shape shape;
  unsigned threads = 0;
  std::size_t rounds = 15;
  std::string json_path;
};

constexpr double kMeasureSeconds = 0.05;

std::vector<const RegisterPeak*> Peaks() {
#if defined(__x86_64__)
  return {&kAmxPeak, &kAvx512VnniPeak};
#else
  return {};
#endif
}

struct Figures {
  std::string isa;
  double register_tops = 0;
  double pass_tops = 0;
  double hit_share = 0;  // of all sums

  double Share() const { return pass_tops / register_tops; }
};

// One instruction set's two loops.
class Contest {
 public:
  Contest(const Options& options, const Int8Kernel& kernel, const RegisterPeak& peak,
          backend::cpu::ThreadPool& pool)
      : kernel_(kernel), peak_(peak), pool_(pool), hits_(pool.thread_count(), 0) {
    for (unsigned thread = 0; thread < pool.thread_count(); ++thread) {
      blocks_.push_back(std::make_unique<KernelBlock>(options.shape, std::uint64_t{1} + thread));
    }
    operands_ = base::PageBuffer(kOperandBytes);
    tests::SeededRandom random(1);
    std::generate_n(operands_.As<std::uint8_t>(), kOperandBytes,
                    [&] { return static_cast<std::uint8_t>(random.Below(255) + 1); });
  }

  absl::Status Check() { return blocks_.front()->Check(kernel_); }

  // Doubles the turns until each measurement lasts kMeasureSeconds.
  void Calibrate() {
    while (TimeRegisters() < kMeasureSeconds) peak_turns_ *= 2;
    while (TimePass() < kMeasureSeconds) pass_turns_ *= 2;
  }

  void Measure() {
    register_seconds_.push_back(TimeRegisters());
    pass_seconds_.push_back(TimePass());
  }

  Figures Result() const {
    const auto threads = static_cast<double>(pool_.thread_count());
    const auto scans = static_cast<double>(pass_turns_) * threads;
    const double register_products =
        static_cast<double>(peak_.products_a_turn) * static_cast<double>(peak_turns_) * threads;
    const double pass_products = static_cast<double>(blocks_.front()->products()) * scans;
    double hits = 0;
    for (const std::size_t count : hits_) hits += static_cast<double>(count);
    // A product and its addition are two operations.
    return {.isa = kernel_.isa,
            .register_tops = 2 * register_products / Median(register_seconds_) / 1e12,
            .pass_tops = 2 * pass_products / Median(pass_seconds_) / 1e12,
            .hit_share = hits / (static_cast<double>(blocks_.front()->sums()) * scans)};
  }

 private:
  double TimeRegisters() {
    const auto run = [&](unsigned) {
      checksum_ += peak_.run(operands_.As<const std::uint8_t>(), peak_turns_);
    };
    return TimeTogether(pool_, run).count();
  }

  double TimePass() {
    const auto run = [&](unsigned participant) {
      KernelBlock& block = *blocks_[participant];
      std::size_t hits = 0;
      kernel_.enter(block.query_count());
      for (std::size_t turn = 0; turn < pass_turns_; ++turn) hits += block.Scan(kernel_, turn);
      kernel_.leave();
      hits_[participant] = hits;
    };
    return TimeTogether(pool_, run).count();
  }

  const Int8Kernel& kernel_;
  const RegisterPeak& peak_;
  backend::cpu::ThreadPool& pool_;
  std::vector<std::unique_ptr<KernelBlock>> blocks_;  // [thread]
  std::vector<std::size_t> hits_;                     // [thread]  of the last pass
  base::PageBuffer operands_;
  std::atomic<std::uint64_t> checksum_{0};
  std::size_t peak_turns_ = 1'024;
  std::size_t pass_turns_ = 2;
  std::vector<double> register_seconds_;
  std::vector<double> pass_seconds_;
};

void PrintTable(const Options& options, const std::vector<Figures>& figures) {
  const KernelBlock::Shape& shape = options.shape;
  fmt::print(
      "{}, {} threads: {} queries, blocks of {} x {}; hits checked against plain arithmetic\n",
      backend::cpu::CpuName(), options.threads, shape.query_count, shape.row_count, shape.dim);
  fmt::print("  {:<12} {:>16} {:>16} {:>8} {:>14}\n", "kernel", "registers, TOPS", "pass, TOPS",
             "share", "hits of sums");
  for (const Figures& each : figures) {
    fmt::print("  {:<12} {:>16.2f} {:>16.2f} {:>7.1f}% {:>14.1e}\n", each.isa, each.register_tops,
               each.pass_tops, each.Share() * 100, each.hit_share);
  }
}

absl::Status WriteJson(const Options& options, const std::vector<Figures>& figures) {
  Json json{{"cpu", backend::cpu::CpuName()},     {"threads", options.threads},
            {"batch", options.shape.query_count}, {"block_rows", options.shape.row_count},
            {"dim", options.shape.dim},           {"kernels", Json::array()}};
  for (const Figures& each : figures) {
    json["kernels"].push_back({{"isa", each.isa},
                               {"register_tops", each.register_tops},
                               {"pass_tops", each.pass_tops},
                               {"share", each.Share()},
                               {"hit_share", each.hit_share}});
  }
  std::ofstream out(options.json_path);
  out << json.dump(1) << '\n';
  if (!out.flush()) {
    return absl::UnavailableError(fmt::format("cannot write {}", options.json_path));
  }
  return absl::OkStatus();
}

absl::Status Bench(Options& options) {
  if (options.shape.row_count % 64 != 0 || options.shape.dim % 64 != 0) {
    return absl::InvalidArgumentError("--rows and --dim must be multiples of 64");
  }
  if (options.threads == 0) options.threads = base::UsableCpuCount();
  backend::cpu::ThreadPool pool(options.threads);
  std::vector<std::unique_ptr<Contest>> contests;
  for (const RegisterPeak* peak : Peaks()) {
    const Int8Kernel* kernel = backend::cpu::FindInt8Kernel(peak->isa);
    if (kernel == nullptr) {
      fmt::print("{}: left out, this machine cannot run it\n", peak->isa);
      continue;
    }
    contests.push_back(std::make_unique<Contest>(options, *kernel, *peak, pool));
    if (absl::Status status = contests.back()->Check(); !status.ok()) return status;
    contests.back()->Calibrate();
  }
  if (contests.empty()) {
    return absl::UnavailableError("this processor has none of the instructions that are compared");
  }
  for (std::size_t round = 0; round < options.rounds; ++round) {
    for (const auto& contest : contests) contest->Measure();
  }
  std::vector<Figures> figures;
  figures.reserve(contests.size());
  for (const auto& contest : contests) figures.push_back(contest->Result());
  PrintTable(options, figures);
  return options.json_path.empty() ? absl::OkStatus() : WriteJson(options, figures);
}

}  // namespace
}  // namespace simile::bench

int main(int argc, char** argv) {
  simile::bench::Options options;
  CLI::App app{"The int8 pass against the peak of its instruction"};
  app.option_defaults()->always_capture_default();
  app.add_option("--batch", options.shape.query_count, "queries")->check(CLI::Range(1U, 65'536U));
  app.add_option("--rows", options.shape.row_count, "rows of a block, a multiple of 64")
      ->check(CLI::Range(64U, 65'536U));
  app.add_option("--dim", options.shape.dim, "a multiple of 64")->check(CLI::Range(64U, 4'096U));
  app.add_option("--threads", options.threads, "0: the processors this process may use")
      ->check(CLI::Range(0U, 1'024U));
  app.add_option("--rounds", options.rounds, "times both loops are measured")
      ->check(CLI::Range(1U, 100'000U));
  app.add_option("--json", options.json_path, "file to write the figures to");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = simile::bench::Bench(options);
  if (status.ok()) return 0;
  fmt::print(stderr, "error: {}\n", std::string(status.message()));
  return 1;
}
