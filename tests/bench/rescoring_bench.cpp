// What answers of many hits cost after the pass: the hits of a query against its k, the rows that
// are scored canonically, and the bytes and time of scoring them query by query and row by row
// (backend/cpu/int8_search.h), against the least bytes that the answers need. Both ways' answers
// are compared with the plain scan's.
//
//   rescoring_bench --vectors F.npy --queries Q.npy --batch 100,1000 --k 10,100,1000
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "backend/cpu/int8_backend.h"
#include "backend/cpu/int8_kernels.h"
#include "backend/cpu/processor.h"
#include "backend/cpu/scan_backend.h"
#include "backend/cpu/thread_pool.h"
#include "base/message_text.h"
#include "bench/bench_data.h"
#include "bench/engine_options.h"
#include "bench/timing.h"

namespace simile::bench {
namespace {

using backend::cpu::Int8Options;

enum class Way { kByQuery, kByRow };

// Counts the hits of an int8 kernel and the rows that a canonical kernel reads. Kernels are plain
// functions, so there is one count for all.
class CountedKernels {
 public:
  // Puts itself before the kernels of the options.
  static void Count(Int8Options& options) {
    real_int8_ = options.large;
    real_canonical_ = options.canonical;
    int8_ = *real_int8_;
    int8_.scan = &Scan;
    canonical_ = {real_canonical_->isa, real_canonical_->score_block, &ScoreScattered};
    options.large = options.small = &int8_;
    options.canonical = &canonical_;
  }
  //   rows  of the segment that is searched next
  static void Reset(MatrixView rows) {
    segment_ = rows;
    hits_ = rows_ = 0;
  }
  static std::size_t hits() { return hits_; }
  static std::size_t rows() { return rows_; }

 private:
  static void Scan(const backend::cpu::BlockScan& block) {
    real_int8_->scan(block);
    hits_ += block.hits->count;
  }
  // Row by row, the one vector is the row, which stays in the cache for the calls that follow.
  static void ScoreScattered(const float* const* vectors, std::size_t count, const float* vector,
                             std::size_t padded_dim, float* scores) {
    static thread_local const float* last = nullptr;
    const float* const begin = segment_.data();
    const bool by_row =
        vector >= begin && vector < begin + segment_.row_count() * segment_.padded_dim();
    rows_ += !by_row ? count : (vector != last ? 1 : 0);
    last = vector;
    real_canonical_->score_scattered(vectors, count, vector, padded_dim, scores);
  }

  static inline MatrixView segment_;
  static inline const backend::cpu::Int8Kernel* real_int8_ = nullptr;
  static inline const certificate::CanonicalKernel* real_canonical_ = nullptr;
  static inline backend::cpu::Int8Kernel int8_{};
  static inline certificate::CanonicalKernel canonical_{};
  static inline std::atomic<std::size_t> hits_{0};
  static inline std::atomic<std::size_t> rows_{0};
};

Int8Options OptionsOf(const EngineOptions& bench, const std::string& isa, Way way) {
  Int8Options options = backend::cpu::OptionsFor(isa);
  options.threads = bench.threads;
  options.foreground_bytes_max = std::numeric_limits<std::size_t>::max();
  options.tuning.int4_from_code_bytes = std::numeric_limits<std::size_t>::max();
  options.row_order_hits_per_row = way == Way::kByRow ? 0 : std::numeric_limits<std::size_t>::max();
  return options;
}

// An index that scores one way, measured or counted.
struct Index {
  std::unique_ptr<Backend> backend;
  std::shared_ptr<const SegmentIndex> index;
};

absl::StatusOr<Index> MakeIndex(std::unique_ptr<Backend> backend, MatrixView rows) {
  auto index = backend->MakeResident({rows, nullptr, Metric::kCosine, 0});
  if (!index.ok()) return index.status();
  return Index{std::move(backend), *std::move(index)};
}

absl::Status Compare(const SearchResult& found, const SearchResult& expected) {
  for (std::size_t query = 0; query < expected.batch(); ++query) {
    if (std::ranges::equal(found.Hits(query), expected.Hits(query))) continue;
    return absl::InternalError(fmt::format(
        "the answer to query {} is not the plain scan's, so nothing is printed", query));
  }
  return absl::OkStatus();
}

// What one search takes.
absl::StatusOr<double> Seconds(const SegmentIndex& index, const SearchBatch& batch,
                               SearchResult& result) {
  const auto start = std::chrono::steady_clock::now();
  if (absl::Status status = index.Search(batch, result); !status.ok()) return status;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Rows among the answers, each once.
std::size_t RowsReturned(const SearchResult& result, std::size_t row_count) {
  std::vector<bool> returned(row_count, false);
  for (std::size_t query = 0; query < result.batch(); ++query) {
    for (const Hit& hit : result.Hits(query)) returned[hit.row] = true;
  }
  return static_cast<std::size_t>(std::ranges::count(returned, true));
}

// One instruction set's indexes, scoring both ways.
class Measured {
 public:
  static absl::StatusOr<Measured> Create(const EngineOptions& options, const std::string& isa,
                                         MatrixView rows) {
    Measured measured;
    for (const Way way : {Way::kByQuery, Way::kByRow}) {
      auto index = MakeIndex(backend::cpu::MakeInt8Backend(OptionsOf(options, isa, way)), rows);
      if (!index.ok()) return index.status();
      measured.indexes_.push_back(*std::move(index));
    }
    return measured;
  }

  // Median of the rounds, which take turns. Errors: the backend's; wrong answers.
  absl::Status Run(const SearchBatch& batch, std::size_t rounds, const SearchResult& expected) {
    std::vector<double> seconds[2];
    for (std::size_t round = 0; round <= rounds; ++round) {
      for (std::size_t way = 0; way < 2; ++way) {
        const absl::StatusOr<double> taken = Seconds(*indexes_[way].index, batch, result_);
        if (!taken.ok()) return taken.status();
        if (round > 0) seconds[way].push_back(*taken);
        if (absl::Status status = Compare(result_, expected); !status.ok()) return status;
      }
    }
    for (std::size_t way = 0; way < 2; ++way) median_s_[way] = Median(seconds[way]);
    rescored_ = 0;
    for (std::size_t query = 0; query < batch.specs.size(); ++query)
      rescored_ += static_cast<double>(result_.Cost(query).rows_rescored);
    return absl::OkStatus();
  }
  double median_s(Way way) const { return median_s_[static_cast<std::size_t>(way)]; }
  double rescored() const { return rescored_; }

 private:
  std::vector<Index> indexes_;
  SearchResult result_;
  double median_s_[2] = {};
  double rescored_ = 0;  // rows, of the batch
};

struct Counts {
  std::size_t hits = 0;
  std::size_t rows_read[2] = {};  // [Way]
};

absl::StatusOr<Counts> CountReads(const EngineOptions& options, const std::string& isa,
                                  MatrixView rows, const SearchBatch& batch,
                                  const SearchResult& expected) {
  Counts counts;
  for (const Way way : {Way::kByQuery, Way::kByRow}) {
    Int8Options counted = OptionsOf(options, isa, way);
    CountedKernels::Count(counted);
    auto index = MakeIndex(backend::cpu::MakeInt8Backend(counted), rows);
    if (!index.ok()) return index.status();
    CountedKernels::Reset(rows);
    SearchResult result;
    if (absl::Status status = index->index->Search(batch, result); !status.ok()) return status;
    if (absl::Status status = Compare(result, expected); !status.ok()) return status;
    counts.hits = CountedKernels::hits();
    counts.rows_read[static_cast<std::size_t>(way)] = CountedKernels::rows();
  }
  return counts;
}

// One line of the table.
struct Case {
  std::string isa;
  std::size_t batch = 0;
  std::uint32_t k = 0;
  double hits = 0;  // a query, as the rescored
  double rescored = 0;
  double read_mb[2] = {};  // [Way]
  double least_mb = 0;
  double ms[2] = {};  // [Way]
  double scan_ms = 0;

  double times_scan() const { return scan_ms / std::min(ms[0], ms[1]); }
};

void PrintHead() {
  fmt::print("  {:<11} {:>5} {:>6} {:>9} {:>9} {:>31} {:>31} {:>8}\n", "", "", "", "hits",
             "rescored", "MB read", "ms", "times");
  fmt::print("  {:<11} {:>5} {:>6} {:>9} {:>9} {:>11} {:>9} {:>9} {:>11} {:>9} {:>9} {:>8}\n",
             "instruction", "batch", "k", "a query", "a query", "by query", "by row", "least",
             "by query", "by row", "scan", "the scan");
}

void Print(const Case& line) {
  fmt::print(
      "  {:<11} {:>5} {:>6} {:>9.0f} {:>9.1f} {:>11.1f} {:>9.1f} {:>9.1f} {:>11.3f} {:>9.3f} "
      "{:>9.3f} {:>8.2f}\n",
      line.isa, line.batch, line.k, line.hits, line.rescored, line.read_mb[0], line.read_mb[1],
      line.least_mb, line.ms[0], line.ms[1], line.scan_ms, line.times_scan());
  std::fflush(stdout);
}

nlohmann::ordered_json JsonOf(const Case& line) {
  return {{"isa", line.isa},
          {"batch", line.batch},
          {"k", line.k},
          {"hits_a_query", line.hits},
          {"rescored_a_query", line.rescored},
          {"read_by_query_mb", line.read_mb[0]},
          {"read_by_row_mb", line.read_mb[1]},
          {"least_mb", line.least_mb},
          {"by_query_ms", line.ms[0]},
          {"by_row_ms", line.ms[1]},
          {"scan_ms", line.scan_ms},
          {"times_the_scan", line.times_scan()}};
}

absl::StatusOr<Case> RunCase(const EngineOptions& options, const std::string& isa,
                             Measured& measured, const SegmentIndex& plain, MatrixView rows,
                             MatrixView queries, std::uint32_t k) {
  QuerySpec spec;
  spec.k = k;
  const std::vector<QuerySpec> specs(queries.row_count(), spec);
  const SearchBatch batch{queries, specs};
  Case line{.isa = isa, .batch = specs.size(), .k = k};
  SearchResult expected;
  std::vector<double> scan_s;
  for (std::size_t round = 0; round <= options.rounds / 2; ++round) {
    const absl::StatusOr<double> seconds = Seconds(plain, batch, expected);
    if (!seconds.ok()) return seconds.status();
    scan_s.push_back(*seconds);
  }
  if (absl::Status status = measured.Run(batch, options.rounds, expected); !status.ok())
    return status;
  const absl::StatusOr<Counts> counts = CountReads(options, isa, rows, batch, expected);
  if (!counts.ok()) return counts.status();
  const double row_mb = static_cast<double>(rows.padded_dim() * sizeof(float)) / 1e6;
  const auto count = static_cast<double>(specs.size());
  line.hits = static_cast<double>(counts->hits) / count;
  line.rescored = measured.rescored() / count;
  for (std::size_t way = 0; way < 2; ++way) {
    line.read_mb[way] = static_cast<double>(counts->rows_read[way]) * row_mb;
    line.ms[way] = measured.median_s(static_cast<Way>(way)) * 1e3;
  }
  line.least_mb = static_cast<double>(RowsReturned(expected, rows.row_count())) * row_mb;
  line.scan_ms = Median(scan_s) * 1e3;
  return line;
}

absl::Status WriteJson(const std::string& path, const nlohmann::ordered_json& cases) {
  std::ofstream out(path);
  out << cases.dump(1) << '\n';
  if (!out.flush()) return absl::UnavailableError(fmt::format("cannot write {}", path));
  return absl::OkStatus();
}

absl::Status Bench(EngineOptions& options) {
  if (absl::Status status = Check(options); !status.ok()) return status;
  backend::cpu::ThreadPool pool(options.threads);
  const absl::StatusOr<BenchData> data = GetData(options, pool);
  if (!data.ok()) return data.status();
  const MatrixView rows = data->rows.view();
  const absl::StatusOr<Index> plain =
      MakeIndex(backend::cpu::MakeScanBackend(*certificate::SupportedCanonicalKernels().front(),
                                              options.threads),
                rows);
  if (!plain.ok()) return plain.status();
  fmt::print("{}, {} threads: {} x {}, {}; every answer is the plain scan's\n\n",
             backend::cpu::CpuName(), options.threads, base::Grouped(rows.row_count()), rows.dim(),
             data->description);
  PrintHead();
  auto cases = nlohmann::ordered_json::array();
  for (const std::string& isa : options.isas) {
    if (backend::cpu::OptionsFor(isa).large == nullptr)
      return absl::InvalidArgumentError(fmt::format("--isa {}: it cannot run here", isa));
    absl::StatusOr<Measured> measured = Measured::Create(options, isa, rows);
    if (!measured.ok()) return measured.status();
    for (const std::size_t batch : options.batches) {
      for (const std::uint32_t k : options.ks) {
        const absl::StatusOr<Case> line = RunCase(options, isa, *measured, *plain->index, rows,
                                                  data->queries.view().Slice(0, batch), k);
        if (!line.ok()) return line.status();
        Print(*line);
        cases.push_back(JsonOf(*line));
      }
    }
  }
  return options.json_path.empty() ? absl::OkStatus() : WriteJson(options.json_path, cases);
}

}  // namespace
}  // namespace simile::bench

int main(int argc, char** argv) {
  simile::bench::EngineOptions options;
  options.rounds = 5;
  CLI::App app{"Canonical scores of candidates, query by query and row by row"};
  simile::bench::AddDataOptions(app, options);
  simile::bench::AddCaseOptions(app, options);
  CLI11_PARSE(app, argc, argv);
  if (options.isas.empty()) {
    for (const auto* kernel : simile::backend::cpu::SupportedInt8Kernels())
      options.isas.emplace_back(kernel->isa);
    options.isas.pop_back();  // "portable", which takes long
  }
  const absl::Status status = simile::bench::Bench(options);
  if (status.ok()) return 0;
  fmt::print(stderr, "error: {}\n", std::string(status.message()));
  return 1;
}
