// The plain scan against the machine's own read bandwidth, measured in the same run on the same
// memory with the same number of threads. All answers are checked against the scalar oracle before
// anything is printed.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "backend/cpu/scan_backend.h"
#include "backend/cpu/thread_pool.h"
#include "base/threads.h"
#include "bench/bench_rows.h"
#include "bench/oracle.h"
#include "bench/read_bandwidth.h"
#include "bench/timing.h"
#include "certificate/canonical_score.h"
#include "data/load/load.h"

namespace simile::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::size_t row_count = 62'423;
  std::size_t dim = 384;
  std::string collection;  // a folder, instead of random rows
  std::uint32_t k = 10;
  unsigned threads = 0;
  std::string isa;
  std::vector<std::size_t> batches{1, 32, 100};
  std::size_t rounds = 35;
  std::uint64_t seed = 1;
  std::string json_path;
};

// Times of one thing over all rounds.
class Times {
 public:
  // Rounds of one stretch: few enough that the load on a shared machine stays the same, enough for
  // a median.
  static constexpr std::size_t kStretch = 7;

  void Add(double seconds) { seconds_.push_back(seconds); }
  double Overall() const { return Median(seconds_); }
  // The medians of each kStretch neighbouring rounds.
  std::vector<double> Stretches() const {
    std::vector<double> medians;
    for (auto first = seconds_.begin(); seconds_.end() - first >= std::ptrdiff_t{kStretch};
         first += kStretch) {
      medians.push_back(Median({first, first + kStretch}));
    }
    return medians;
  }
  double Quietest() const { return std::ranges::min(Stretches()); }

 private:
  std::vector<double> seconds_;
};

struct Report {
  std::string engine;
  std::string device;
  std::string rows;
  std::size_t bytes = 0;
  std::size_t rounds = 0;
  std::vector<ReadPattern> patterns;
  std::vector<Times> reads;  // [pattern]
  std::vector<std::size_t> batches;
  std::vector<Times> scans;  // [batch]

  double GigabytesPerSecond(double seconds) const {
    return static_cast<double>(bytes) / seconds / 1e9;
  }
  std::size_t BestPattern() const {
    const auto best = std::ranges::min_element(reads, {}, &Times::Quietest);
    return static_cast<std::size_t>(best - reads.begin());
  }
  // The scan's bandwidth as a share of the machine's: the median over the stretches, each compared
  // with itself.
  double Share(std::size_t i) const {
    std::vector<double> shares = reads[BestPattern()].Stretches();
    const std::vector<double> scan = scans[i].Stretches();
    for (std::size_t stretch = 0; stretch < shares.size(); ++stretch) {
      shares[stretch] /= scan[stretch];
    }
    return Median(shares);
  }
};

struct Rows {
  data::Matrix matrix;
  std::string description;
};

absl::StatusOr<Rows> GetRows(const Options& options) {
  if (options.collection.empty()) {
    auto matrix = RandomUnitRows(options.row_count, options.dim, options.seed);
    if (!matrix.ok()) return matrix.status();
    return Rows{*std::move(matrix), fmt::format("random unit vectors, seed {}", options.seed)};
  }
  const Limits limits;
  const auto plan = data::PlanDataset(options.collection, limits);
  if (!plan.ok()) return plan.status();
  auto dataset = data::LoadDataset(*plan, limits, {});
  if (!dataset.ok()) return dataset.status();
  return Rows{std::move(dataset->vectors), options.collection};
}

std::vector<QuerySpec> Specs(std::size_t query_count, std::uint32_t k) {
  std::vector<QuerySpec> specs(query_count);
  for (QuerySpec& spec : specs) spec.k = k;
  return specs;
}

// Evicts the rows from the caches, so that every measurement reads memory.
class CacheSweeper {
 public:
  CacheSweeper() : bytes_(kBytes, std::byte{1}) {}
  void Sweep(backend::cpu::ThreadPool& pool) { TimeRead(ReadPatterns().front(), bytes_, pool); }

 private:
  static constexpr std::size_t kBytes = 128U << 20;
  std::vector<std::byte> bytes_;
};

// One round measures everything once, so that a disturbance affects all alike.
void Measure(const SegmentIndex& index, const data::Matrix& queries, std::uint32_t k,
             std::span<const std::byte> memory, backend::cpu::ThreadPool& pool, Report& report) {
  SearchResult result;
  const std::vector<QuerySpec> specs = Specs(queries.row_count(), k);
  CacheSweeper sweeper;
  for (std::size_t round = 0; round < report.rounds; ++round) {
    for (std::size_t i = 0; i < report.patterns.size(); ++i) {
      sweeper.Sweep(pool);
      report.reads[i].Add(TimeRead(report.patterns[i], memory, pool).count());
    }
    for (std::size_t i = 0; i < report.batches.size(); ++i) {
      const SearchBatch batch{queries.view().Slice(0, report.batches[i]),
                              std::span(specs).first(report.batches[i])};
      sweeper.Sweep(pool);
      const auto start = Clock::now();
      const absl::Status status = index.Search(batch, result);
      report.scans[i].Add(std::chrono::duration<double>(Clock::now() - start).count());
      if (!status.ok()) std::abort();  // it succeeded when the answers were checked
    }
  }
}

absl::Status CheckBatches(const SegmentIndex& index, const MatrixView& rows,
                          const data::Matrix& queries, const Options& options,
                          backend::cpu::ThreadPool& pool) {
  const auto expected = OracleAnswers(rows, queries.view(), options.k, pool);
  SearchResult result;
  const std::vector<QuerySpec> specs = Specs(queries.row_count(), options.k);
  for (const std::size_t size : options.batches) {
    const SearchBatch batch{queries.view().Slice(0, size), std::span(specs).first(size)};
    if (absl::Status status = index.Search(batch, result); !status.ok()) return status;
    if (absl::Status status = CheckAnswers(result, expected); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void PrintTable(const Report& report) {
  fmt::print("{} on {}: {}, {:.1f} MB; {} rounds from cold caches, answers checked\n",
             report.engine, report.device, report.rows, static_cast<double>(report.bytes) / 1e6,
             report.rounds);
  fmt::print("  {:<36} {:>9} {:>9} {:>7}\n", "", "median ms", "quietest", "GB/s");
  const auto line = [&](const std::string& name, const Times& times, const std::string& note) {
    fmt::print("  {:<36} {:>9.3f} {:>9.3f} {:>7.1f}  {}\n", name, times.Overall() * 1e3,
               times.Quietest() * 1e3, report.GigabytesPerSecond(times.Quietest()), note);
  };
  const std::size_t best = report.BestPattern();
  for (std::size_t i = 0; i < report.patterns.size(); ++i) {
    line("read " + report.patterns[i].name, report.reads[i], i == best ? "the machine" : "");
  }
  for (std::size_t i = 0; i < report.batches.size(); ++i) {
    line(fmt::format("scan batch {}", report.batches[i]), report.scans[i],
         fmt::format("{:.0f}% of the machine", report.Share(i) * 100));
  }
}

std::string Json(const Report& report) {
  std::string json = fmt::format(
      "{{\"engine\": \"{}\", \"device\": \"{}\", \"rows\": \"{}\", \"bytes\": {}, \"rounds\": {},\n"
      " \"reads\": [",
      report.engine, report.device, report.rows, report.bytes, report.rounds);
  const char* separator = "";
  for (std::size_t i = 0; i < report.patterns.size(); ++i) {
    json += fmt::format(
        "{}\n  {{\"pattern\": \"{}\", \"median_ms\": {:.4f}, \"quietest_ms\": {:.4f}}}", separator,
        report.patterns[i].name, report.reads[i].Overall() * 1e3, report.reads[i].Quietest() * 1e3);
    separator = ",";
  }
  json += "],\n \"scans\": [";
  separator = "";
  for (std::size_t i = 0; i < report.batches.size(); ++i) {
    json += fmt::format(
        "{}\n  {{\"batch\": {}, \"median_ms\": {:.4f}, \"quietest_ms\": {:.4f}, "
        "\"share_of_bandwidth\": {:.4f}}}",
        separator, report.batches[i], report.scans[i].Overall() * 1e3,
        report.scans[i].Quietest() * 1e3, report.Share(i));
    separator = ",";
  }
  return json + "]}\n";
}

absl::Status Run(const Options& options) {
  const certificate::CanonicalKernel* kernel =
      options.isa.empty() ? certificate::SupportedCanonicalKernels().front()
                          : certificate::FindCanonicalKernel(options.isa);
  if (kernel == nullptr) {
    return absl::InvalidArgumentError(fmt::format("this processor cannot run {}", options.isa));
  }
  auto rows = GetRows(options);
  if (!rows.ok()) return rows.status();
  const MatrixView view = rows->matrix.view();
  const auto queries =
      RandomUnitRows(*std::ranges::max_element(options.batches), view.dim(), options.seed + 1);
  if (!queries.ok()) return queries.status();

  const unsigned threads = options.threads > 0 ? options.threads : base::UsableCpuCount();
  backend::cpu::ThreadPool pool(threads);
  const auto backend = backend::cpu::MakeScanBackend(*kernel, threads);
  const auto index = backend->MakeResident(SegmentRows{view, nullptr, Metric::kCosine, 0});
  if (!index.ok()) return index.status();
  if (absl::Status status = CheckBatches(**index, view, *queries, options, pool); !status.ok()) {
    return absl::InternalError(fmt::format("the answers are wrong, so no times are printed: {}",
                                           std::string(status.message())));
  }

  Report report;
  report.engine = backend->info().engine;
  report.device = backend->info().device;
  report.rows = fmt::format("{} x {}, {}", view.row_count(), view.dim(), rows->description);
  report.bytes = view.bytes();
  report.rounds = options.rounds;
  report.patterns = ReadPatterns();
  report.reads.resize(report.patterns.size());
  report.batches = options.batches;
  report.scans.resize(report.batches.size());
  Measure(**index, *queries, options.k,
          std::as_bytes(std::span(view.data(), view.row_count() * view.padded_dim())), pool,
          report);
  PrintTable(report);
  if (!options.json_path.empty()) {
    std::ofstream json(options.json_path);
    json << Json(report);
    if (!json.flush()) {
      return absl::UnavailableError(fmt::format("cannot write {}", options.json_path));
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace simile::bench

int main(int argc, char** argv) {
  simile::bench::Options options;
  CLI::App app{"The plain scan against the machine's read bandwidth"};
  app.add_option("--rows", options.row_count, "random rows to scan")->check(CLI::PositiveNumber);
  app.add_option("--dim", options.dim, "their dimension")->check(CLI::Range(1, 4096));
  app.add_option("--collection", options.collection, "folder to take the rows from instead");
  app.add_option("--k", options.k, "hits a query")->check(CLI::Range(1, 10'000));
  app.add_option("--threads", options.threads, "0: the processors this process may use");
  app.add_option("--isa", options.isa,
                 "avx512, avx2, neon or portable; default the fastest that can run");
  app.add_option("--batches", options.batches, "batch sizes")->check(CLI::Range(1, 10'000));
  app.add_option("--rounds", options.rounds, "times everything is measured")
      ->check(CLI::Range(7, 100'000));
  app.add_option("--seed", options.seed, "of the random vectors");
  app.add_option("--json", options.json_path, "file to write the figures to");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = simile::bench::Run(options);
  if (status.ok()) return 0;
  fmt::print(stderr, "error: {}\n", std::string(status.message()));
  return 1;
}
