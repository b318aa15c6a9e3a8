// The GPU plug-in on a real card answers every case with the oracle's rows and bits, down each of
// its roads; and large segments as the plain scan on the CPU does. It is the plug-in itself that is
// loaded, as the server loads it.
//
//   device_conformance --cases 2000 --seconds 20 --gtest_output=json:conformance.json
//   device_conformance --only-seed 3000017      (a seed that a failure has printed)
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "backend/cpu/cpu_count.h"
#include "backend/cpu/scan_backend.h"
#include "backend/cpu/thread_pool.h"
#include "backend/cuda/forced_road.h"
#include "backend/gpu_plugin.h"
#include "bench/gpu/query_specs.h"
#include "bench/synthetic_rows.h"
#include "certificate/canonical_score.h"
#include "conformance/conformance_case.h"
#include "conformance/conformance_check.h"
#include "simile/clock.h"

namespace simile::bench::gpu {
namespace {

using testing::ForcedRoad;

struct Options {
  std::string plugin;
  int device = 0;
  std::vector<std::string> blas;
  std::uint64_t cases = 2'000;  // a road
  double seconds = 20;          // a road
  std::uint64_t first_seed = 3'000'000;
  std::uint64_t only_seed = 0;
  std::size_t large_rows = 200'000;
};

// Set once, before any test runs.
Options& Given() {
  static Options options;
  return options;
}
const SimileCudaPlugin*& Plugin() {
  static const SimileCudaPlugin* plugin = nullptr;
  return plugin;
}

backend::GpuOptions GpuOptionsOf(ForcedRoad road, bool small_workspace) {
  static const RealClock clock;
  backend::GpuOptions options;
  options.device = Given().device;
  options.blas_libraries = Given().blas;
  options.batch_timeout = std::chrono::minutes(5);  // a checker may watch every access
  options.clock = &clock;
  if (small_workspace) options.workspace = testing::SmallWorkspace();
  testing::Force(road, options);
  return options;
}

absl::StatusOr<std::unique_ptr<Backend>> Open(ForcedRoad road, bool small_workspace) {
  const backend::GpuOptions options = GpuOptionsOf(road, small_workspace);
  absl::StatusOr<std::unique_ptr<Backend>> backend = absl::UnknownError("not opened");
  Plugin()->open(&options, &backend);
  return backend;
}

struct Road {
  const char* name;
  ForcedRoad road;
  const char* engine;  // as answers that came this road begin to call it
};
constexpr Road kRoads[] = {{"AsServed", ForcedRoad::kNone, "scan-"},
                           {"RowScan", ForcedRoad::kRowScan, "fp16-scan-"},
                           {"Gemm", ForcedRoad::kGemm, "fp16-gemm-"},
                           {"Gather", ForcedRoad::kGather, "gather-"},
                           {"Canonical", ForcedRoad::kCanonical, "scan-"}};

void PrintTo(const Road& road, std::ostream* out) { *out << road.name; }

class DeviceConformanceTest : public ::testing::TestWithParam<Road> {};

TEST_P(DeviceConformanceTest, AnswersWithTheOraclesRowsAndBits) {
  const Road& road = GetParam();
  const auto backend = Open(road.road, true);
  ASSERT_TRUE(backend.ok()) << backend.status().ToString();
  const bool replay = Given().only_seed != 0;
  const std::uint64_t first = replay ? Given().only_seed : Given().first_seed;
  const auto began = std::chrono::steady_clock::now();
  SearchResult result;  // one for all cases: whatever an answer leaves behind meets the next
  std::uint64_t cases = 0, queries = 0, on_road = 0, rescans = 0;
  for (; cases < (replay ? 1 : Given().cases); ++cases) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - began;
    if (cases > 0 && spent.count() > Given().seconds) break;
    conformance::ExpectConforms(**backend, first + cases, result);
    if (HasFatalFailure()) {
      std::printf("%s: replay with --only-seed %" PRIu64 "\n", road.name, first + cases);
      return;
    }
    for (std::size_t query = 0; query < result.batch(); ++query) {
      const std::string_view engine = result.Engine(query);
      if (engine.empty()) continue;  // nothing passes
      ++queries;
      if (engine.starts_with(road.engine)) ++on_road;
      rescans += result.Cost(query).rescans;
    }
  }
  RecordProperty("cases", std::to_string(cases));
  RecordProperty("queries", std::to_string(queries));
  RecordProperty("on_road", std::to_string(on_road));
  RecordProperty("rescans", std::to_string(rescans));
  std::printf("%s: %" PRIu64 " cases from seed %" PRIu64 ", %" PRIu64 " of %" PRIu64
              " queries on the road, %" PRIu64 " rescans\n",
              road.name, cases, first, on_road, queries, rescans);
  if (cases < 20) return;
  EXPECT_GT(on_road, 0U) << "the road was not taken at all";
}

INSTANTIATE_TEST_SUITE_P(Roads, DeviceConformanceTest, ::testing::ValuesIn(kRoads),
                         [](const auto& test) { return std::string(test.param.name); });

// A segment that sampled gates are made for, and what the scan answers about it.
class LargeSegmentTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  static constexpr std::size_t kQueries = 1'000;
  static constexpr std::uint32_t kKMax = 1'000;

  void SetUp() override {
    const std::size_t dim = GetParam();
    const std::size_t rows = std::max<std::size_t>(Given().large_rows * 384 / dim, 5'000);
    const unsigned threads = backend::cpu::UsableCpuCount();
    backend::cpu::ThreadPool pool(threads);
    const SyntheticRows source(Spread::kClustered, dim, 3, 1);
    auto drawn = source.Draw(0, rows, pool);
    ASSERT_TRUE(drawn.ok()) << drawn.status().ToString();
    rows_ = std::make_shared<data::Matrix>(*std::move(drawn));
    auto queries = source.Draw(SyntheticRows::kFirstQuery, kQueries, pool);
    ASSERT_TRUE(queries.ok()) << queries.status().ToString();
    queries_ = *std::move(queries);
    scan_ = backend::cpu::MakeScanBackend(*certificate::SupportedCanonicalKernels()[0], threads);
    auto index = scan_->MakeResident(Segment());
    ASSERT_TRUE(index.ok());
    scan_index_ = *std::move(index);
  }

  SegmentRows Segment() const { return {rows_->view(), rows_, Metric::kCosine, 0}; }

  // Both answer; every row and bit must agree.
  void ExpectSameAnswers(const SegmentIndex& index, const std::vector<QuerySpec>& specs) {
    const SearchBatch batch{queries_.view().Slice(0, specs.size()), specs};
    ASSERT_TRUE(scan_index_->Search(batch, expected_).ok());
    const absl::Status status = index.Search(batch, actual_);
    ASSERT_TRUE(status.ok()) << status.ToString();
    for (std::size_t query = 0; query < specs.size(); ++query) {
      const auto expected = expected_.Hits(query), actual = actual_.Hits(query);
      ASSERT_TRUE(std::ranges::equal(actual, expected,
                                     [](const Hit& a, const Hit& b) {
                                       return a.row == b.row &&
                                              std::bit_cast<std::uint32_t>(a.score) ==
                                                  std::bit_cast<std::uint32_t>(b.score);
                                     }))
          << "dim " << GetParam() << ", batch " << specs.size() << ", query " << query << ", k "
          << specs[query].k << ", by " << actual_.Engine(query);
      rescans_ += actual_.Cost(query).rescans;
    }
  }

  std::shared_ptr<data::Matrix> rows_;
  data::Matrix queries_;
  std::unique_ptr<Backend> scan_;
  std::shared_ptr<const SegmentIndex> scan_index_;
  SearchResult expected_, actual_;
  std::uint64_t rescans_ = 0;
};

TEST_P(LargeSegmentTest, AnswersEveryBatchAndKAsTheScanDoes) {
  for (const ForcedRoad road : {ForcedRoad::kNone, ForcedRoad::kRowScan, ForcedRoad::kGemm}) {
    const auto backend = Open(road, false);
    ASSERT_TRUE(backend.ok()) << backend.status().ToString();
    const auto index = (*backend)->MakeResident(Segment());
    ASSERT_TRUE(index.ok()) << index.status().ToString();
    for (const std::size_t batch : {1U, 7U, 16U, 17U, 33U, 64U, 65U, 100U}) {
      for (const std::uint32_t k : {1U, 10U, 100U, kKMax}) {
        ExpectSameAnswers(**index, AllWanting(batch, k));
        if (HasFatalFailure()) return;
      }
    }
    ExpectSameAnswers(**index, AllWanting(kQueries, 10));
    if (HasFatalFailure()) return;
  }
  RecordProperty("rescans", std::to_string(rescans_));
}

TEST_P(LargeSegmentTest, AnswersMasksAndExclusionsAsTheScanDoes) {
  std::vector<RowMask> masks;
  for (const std::size_t one_in : {2U, 20U, 500U}) {
    RowMask& mask = masks.emplace_back(rows_->row_count());
    for (std::size_t row = 0; row < rows_->row_count(); row += one_in) {
      mask.Allow(static_cast<Row>(row));
    }
  }
  std::vector<Row> excluded;
  for (Row row = 0; row < rows_->row_count(); row += 997) excluded.push_back(row);
  const auto backend = Open(ForcedRoad::kNone, false);
  ASSERT_TRUE(backend.ok()) << backend.status().ToString();
  const auto index = (*backend)->MakeResident(Segment());
  ASSERT_TRUE(index.ok()) << index.status().ToString();
  for (const std::size_t batch : {5U, 64U, 130U}) {
    std::vector<QuerySpec> specs(batch);
    for (std::size_t query = 0; query < batch; ++query) {
      specs[query].k = query % 3 == 0 ? 100 : 10;
      if (query % 4 != 0) specs[query].mask = &masks[query % 4 - 1];
      if (query % 5 == 0) specs[query].excluded_rows = excluded;
    }
    ExpectSameAnswers(**index, specs);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Dims, LargeSegmentTest, ::testing::Values(384U, 768U, 4'096U),
                         [](const auto& test) { return "Dim" + std::to_string(test.param); });

// 0, or the exit code with what is missing said.
int OpenPlugin() {
  const auto plugin = backend::LoadGpuPlugin(Given().plugin);
  if (!plugin.ok()) {
    fmt::print(stderr, "error: {}\n", std::string(plugin.status().message()));
    return 1;
  }
  Plugin() = *plugin;
  SimileCudaProbe probe;
  Plugin()->probe(&probe);
  if (probe.error == 0) return 0;
  fmt::print(stderr,
             "error: no GPU to check: {} ({}); run this on a machine with an NVIDIA card and a "
             "driver for CUDA {}\n",
             std::begin(probe.error_text), std::begin(probe.error_name),
             probe.runtime_version / 1'000);
  return 2;
}

int Main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  Options& options = Given();
  std::error_code ignored;
  options.plugin =
      std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "libsimile_cuda.so";
  CLI::App app{"The GPU plug-in on a real card, against the oracle and the plain scan"};
  app.add_option("--plugin", options.plugin, "libsimile_cuda.so; default beside this program");
  app.add_option("--device", options.device, "As CUDA numbers them");
  app.add_option("--blas", options.blas, "cuBLAS, as for dlopen; default the toolkit's own name");
  app.add_option("--cases", options.cases, "Of each road; default 2000");
  app.add_option("--seconds", options.seconds, "A road ends earlier after so long; default 20");
  app.add_option("--first-seed", options.first_seed, "Of the cases");
  app.add_option("--only-seed", options.only_seed, "This case alone, down every road");
  app.add_option("--large-rows", options.large_rows, "Of the large segment with 384 dimensions");
  CLI11_PARSE(app, argc, argv);
  if (const int code = OpenPlugin(); code != 0) return code;
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace simile::bench::gpu

int main(int argc, char** argv) { return simile::bench::gpu::Main(argc, argv); }
