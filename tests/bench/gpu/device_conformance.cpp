// The GPU plug-in on a real card: with each strategy forced it answers every case with the oracle's
// rows and bits, and large segments with the plain scan's. Loads the plug-in as the server does.
//
//   device_conformance --cases 2000 --seconds 20 --json conformance.json
//   device_conformance --gtest_filter='*/RowScan*'      one strategy
//   device_conformance --only-seed 3000017      one case, whose seed a failure has printed
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "backend/cpu/scan_backend.h"
#include "backend/cpu/thread_pool.h"
#include "backend/cuda/forced_strategy.h"
#include "base/threads.h"
#include "bench/gpu/json_file.h"
#include "bench/gpu/query_specs.h"
#include "bench/plugin_of_bench.h"
#include "bench/synthetic_rows.h"
#include "certificate/canonical_score.h"
#include "conformance/conformance_case.h"
#include "conformance/conformance_check.h"
#include "simile/clock.h"

namespace simile::bench::gpu {
namespace {

using tests::ForcedStrategy;

struct Options {
  std::string plugin;
  int device = 0;
  std::vector<std::string> blas;
  std::uint64_t cases = 2'000;  // per strategy
  double seconds = 20;          // per strategy
  std::uint64_t first_seed = 3'000'000;
  std::uint64_t only_seed = 0;
  std::size_t large_rows = 270'000;  // more than 262,144: from there on scans set a second gate
  unsigned batch_timeout_s = 10;
  std::string json_path;
};

// Set before any test runs.
Options& GivenOptions() {
  static Options options;
  return options;
}
const SimilePlugin*& Plugin() {
  static const SimilePlugin* plugin = nullptr;
  return plugin;
}

// The segments of a test: the oracle's small ones are searched with a small workspace, and with
// passes too where the server would compute canonical scores of all rows at once.
enum class Segments : std::uint8_t { kSmall, kLarge };

backend::GpuOptions GpuOptionsOf(ForcedStrategy strategy, Segments segments) {
  static const RealClock clock;
  backend::GpuOptions options;
  options.device = GivenOptions().device;
  options.blas_libraries = GivenOptions().blas;
  options.reserve_bytes = 0;  // nothing else uses the card
  options.batch_timeout = std::chrono::seconds(GivenOptions().batch_timeout_s);
  options.clock = &clock;
  if (segments == Segments::kSmall) {
    options.workspace = tests::SmallWorkspace();
    options.tuning.canonical_rows_max = 0;
  }
  tests::Force(strategy, options);
  return options;
}

absl::StatusOr<std::unique_ptr<Backend>> Open(ForcedStrategy strategy, Segments segments) {
  const backend::GpuOptions options = GpuOptionsOf(strategy, segments);
  absl::StatusOr<std::unique_ptr<Backend>> backend = absl::UnknownError("not opened");
  Plugin()->open(&options, &backend);
  return backend;
}

struct Strategy {
  const char* name;
  ForcedStrategy forced;
  const char* engine;  // how the engine's name begins on answers of this strategy; empty: any pass
};
constexpr Strategy kStrategies[] = {{"AsServed", ForcedStrategy::kNone, ""},
                                    {"Int8Scan", ForcedStrategy::kInt8Scan, "int8-scan-"},
                                    {"RowScan", ForcedStrategy::kRowScan, "fp16-scan-"},
                                    {"Gemm", ForcedStrategy::kGemm, "fp16-gemm-"},
                                    {"Gather", ForcedStrategy::kGather, "gather-"},
                                    {"Canonical", ForcedStrategy::kCanonical, "scan-"}};

// Whether an answer with this engine's name, "fp16-scan-sm90", is of the strategy. A card without
// the int8 scan uses the next one.
bool IsOf(const Strategy& strategy, std::string_view engine) {
  if (strategy.forced == ForcedStrategy::kNone) return !engine.starts_with("scan-");
  const bool is_fp16_scan = engine.starts_with("fp16-scan-");
  if (strategy.forced == ForcedStrategy::kInt8Scan && is_fp16_scan) {
    return std::atoi(engine.substr(engine.find("-sm") + 3).data()) < 80;
  }
  return engine.starts_with(strategy.engine);
}

// Why this strategy cannot run on this machine; empty where it can.
std::string WhyNot(const Strategy& strategy, const Backend& backend) {
  return strategy.forced == ForcedStrategy::kGemm ? backend.limitation() : "";
}

void PrintTo(const Strategy& strategy, std::ostream* out) { *out << strategy.name; }

// Writes the outcome of each test when it ends, and what runs before it does, so that a run that is
// stopped loses nothing.
class OutcomeFile : public ::testing::EmptyTestEventListener {
 public:
  // The one of this program, which GoogleTest owns.
  static OutcomeFile& Get() {
    static auto* const file = new OutcomeFile;
    return *file;
  }

  //   so_far  what the test has counted
  void SetRunning(const std::string& what, const nlohmann::json& so_far = {}) {
    json_["running"] = what;
    json_["so_far"] = so_far;
    Write();
  }

 private:
  OutcomeFile() = default;

  void OnTestEnd(const ::testing::TestInfo& test) override {
    const ::testing::TestResult& result = *test.result();
    const std::string name = fmt::format("{}.{}", test.test_suite_name(), test.name());
    json_.erase("running");
    json_.erase("so_far");
    if (result.Skipped()) {
      json_["skipped"][name] = result.GetTestPartResult(0).message();
      return Write();
    }
    nlohmann::json line{{"test", name},
                        {"passed", result.Passed()},
                        {"seconds", static_cast<double>(result.elapsed_time()) / 1e3}};
    for (int i = 0; i < result.test_property_count(); ++i) {
      line[result.GetTestProperty(i).key()] = result.GetTestProperty(i).value();
    }
    json_["tests"].push_back(std::move(line));
    Write();
  }

  void Write() const {
    if (absl::Status status = WriteJsonFile(json_, GivenOptions().json_path); !status.ok()) {
      fmt::print(stderr, "error: {}\n", std::string(status.message()));
    }
  }

  nlohmann::json json_{{"tests", nlohmann::json::array()}};
};

class DeviceConformanceTest : public ::testing::TestWithParam<Strategy> {};

TEST_P(DeviceConformanceTest, AnswersWithTheOraclesRowsAndBits) {
  const Strategy& strategy = GetParam();
  const auto backend = Open(strategy.forced, Segments::kSmall);
  ASSERT_TRUE(backend.ok()) << backend.status().ToString();
  if (const std::string why = WhyNot(strategy, **backend); !why.empty()) GTEST_SKIP() << why;
  const bool replay = GivenOptions().only_seed != 0;
  const std::uint64_t first = replay ? GivenOptions().only_seed : GivenOptions().first_seed;
  const auto began = std::chrono::steady_clock::now();
  SearchResult result;  // one for all cases: see ExpectConforms
  std::uint64_t cases = 0, queries = 0, by_strategy = 0, rescans = 0;
  for (; cases < (replay ? 1 : GivenOptions().cases); ++cases) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - began;
    if (cases > 0 && spent.count() > GivenOptions().seconds) break;
    OutcomeFile::Get().SetRunning(
        fmt::format("{}, seed {}", strategy.name, first + cases),
        {{"cases", cases}, {"queries", queries}, {"by_strategy", by_strategy}});
    conformance::EngineTally tally;
    conformance::ExpectConforms(**backend, first + cases, result, tally);
    if (HasFatalFailure()) {
      std::printf("%s: replay with --only-seed %" PRIu64 "\n", strategy.name, first + cases);
      return;
    }
    for (std::size_t query = 0; query < result.batch(); ++query) {
      const std::string_view engine = result.Engine(query);
      if (engine.empty()) continue;  // nothing passes
      ++queries;
      if (IsOf(strategy, engine)) ++by_strategy;
      rescans += result.Cost(query).rescans;
    }
  }
  RecordProperty("cases", std::to_string(cases));
  RecordProperty("queries", std::to_string(queries));
  RecordProperty("by_strategy", std::to_string(by_strategy));
  RecordProperty("rescans", std::to_string(rescans));
  std::printf("%s: %" PRIu64 " cases from seed %" PRIu64 ", %" PRIu64 " of %" PRIu64
              " queries by this strategy, %" PRIu64 " rescans\n",
              strategy.name, cases, first, by_strategy, queries, rescans);
  // A gate needs more rows than many of the small segments have: the emulated device answers a
  // twelfth of all queries by an int8 scan.
  constexpr std::uint64_t kQueriesPerOneByStrategy = 20;
  if (replay) return;
  EXPECT_GE(by_strategy * kQueriesPerOneByStrategy, queries)
      << "the strategy answered only " << by_strategy << " of " << queries << " queries";
}

INSTANTIATE_TEST_SUITE_P(Strategies, DeviceConformanceTest, ::testing::ValuesIn(kStrategies),
                         [](const auto& test) { return std::string(test.param.name); });

// A segment large enough for sampled gates, and the scan's answers.
class LargeSegmentTest : public ::testing::TestWithParam<std::tuple<Strategy, std::size_t>> {
 protected:
  static constexpr std::size_t kQueries = 1'000;
  static constexpr std::uint32_t kKMax = 1'000;

  void SetUp() override {
    const Strategy& strategy = std::get<Strategy>(GetParam());
    auto backend = Open(strategy.forced, Segments::kLarge);
    ASSERT_TRUE(backend.ok()) << backend.status().ToString();
    if (const std::string why = WhyNot(strategy, **backend); !why.empty()) GTEST_SKIP() << why;
    const std::size_t dim = std::get<std::size_t>(GetParam());
    const std::size_t rows = std::max<std::size_t>(GivenOptions().large_rows * 384 / dim, 5'000);
    const unsigned threads = base::UsableCpuCount();
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
    backend_ = *std::move(backend);
    auto resident = backend_->MakeResident(Segment());
    ASSERT_TRUE(resident.ok()) << resident.status().ToString();
    index_ = *std::move(resident);
  }

  SegmentRows Segment() const { return {rows_->view(), rows_, Metric::kCosine, 0}; }

  // Whether the strategy must answer a query of this batch. Not the others: longer answers find no
  // gate in the shortest segment, more or longer queries than these may not fit the shared memory
  // that a scan has on a small card, and only a query with a short list can be gathered.
  static bool MustAnswer(const Strategy& strategy, std::size_t dim, std::size_t batch,
                         const QuerySpec& spec, const RowMask* listed) {
    constexpr std::uint32_t kKOfEverySegment = 100;
    constexpr std::size_t kScanBatch = 16, kScanDim = 768;
    switch (strategy.forced) {
      case ForcedStrategy::kInt8Scan:
      case ForcedStrategy::kRowScan:
        if (batch > kScanBatch || dim > kScanDim) return false;
        break;
      case ForcedStrategy::kGather:
        if (listed == nullptr || spec.mask != listed) return false;
        break;
      default:
        break;
    }
    return spec.k <= kKOfEverySegment;
  }

  // Expects the same rows and score bits from both, by the strategy unless a query was rescanned.
  //   what    the batch, for messages
  //   listed  a mask that so few rows pass that they are listed; may be null
  void ExpectSameAnswers(const std::vector<QuerySpec>& specs, const std::string& what,
                         const RowMask* listed = nullptr) {
    const auto& [strategy, dim] = GetParam();
    const std::string running = fmt::format("{}, dim {}, {}", strategy.name, dim, what);
    OutcomeFile::Get().SetRunning(running);
    const SearchBatch batch{queries_.view().Slice(0, specs.size()), specs};
    ASSERT_TRUE(scan_index_->Search(batch, expected_).ok());
    const absl::Status status = index_->Search(batch, actual_);
    ASSERT_TRUE(status.ok()) << running << ": " << status.ToString();
    for (std::size_t query = 0; query < specs.size(); ++query) {
      const auto expected = expected_.Hits(query), actual = actual_.Hits(query);
      ASSERT_TRUE(std::ranges::equal(actual, expected,
                                     [](const Hit& a, const Hit& b) {
                                       return a.row == b.row &&
                                              std::bit_cast<std::uint32_t>(a.score) ==
                                                  std::bit_cast<std::uint32_t>(b.score);
                                     }))
          << running << ", query " << query << ", k " << specs[query].k << ", by "
          << actual_.Engine(query);
      const std::uint64_t rescans = actual_.Cost(query).rescans;
      const bool is_by_strategy = IsOf(strategy, actual_.Engine(query));
      ASSERT_TRUE(rescans > 0 || is_by_strategy ||
                  !MustAnswer(strategy, dim, specs.size(), specs[query], listed))
          << running << ", query " << query << ", k " << specs[query].k << " was answered by "
          << actual_.Engine(query) << ", of a card with " << BytesOnCard() << " bytes of the rows";
      rescans_ += rescans;
      ++queries_answered_;
      if (is_by_strategy) ++by_strategy_;
    }
  }

  void TearDown() override {
    RecordProperty("queries", std::to_string(queries_answered_));
    RecordProperty("by_strategy", std::to_string(by_strategy_));
    RecordProperty("rescans", std::to_string(rescans_));
  }

  std::uint64_t BytesOnCard() const {
    const auto resident = index_->Resident();
    return resident ? resident->device_bytes : 0;
  }

  std::shared_ptr<data::Matrix> rows_;
  data::Matrix queries_;
  std::unique_ptr<Backend> scan_, backend_;
  std::shared_ptr<const SegmentIndex> scan_index_, index_;
  SearchResult expected_, actual_;
  std::uint64_t queries_answered_ = 0, by_strategy_ = 0, rescans_ = 0;
};

TEST_P(LargeSegmentTest, AnswersEveryBatchAndKAsTheScanDoes) {
  for (const std::size_t batch : {1U, 7U, 16U, 17U, 33U, 64U, 65U, 100U}) {
    for (const std::uint32_t k : {1U, 10U, 100U, kKMax}) {
      ExpectSameAnswers(AllWanting(batch, k), fmt::format("batch {}, k {}", batch, k));
      if (HasFatalFailure()) return;
    }
  }
  ExpectSameAnswers(AllWanting(kQueries, 10), fmt::format("batch {}, k 10", kQueries));
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
  for (const std::size_t batch : {5U, 64U, 130U}) {
    std::vector<QuerySpec> specs(batch);
    for (std::size_t query = 0; query < batch; ++query) {
      specs[query].k = query % 3 == 0 ? 100 : 10;
      if (query % 4 != 0) specs[query].mask = &masks[query % 4 - 1];
      if (query % 5 == 0) specs[query].excluded_rows = excluded;
    }
    ExpectSameAnswers(specs, fmt::format("batch {} with masks", batch), &masks.back());
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Large, LargeSegmentTest,
                         ::testing::Combine(::testing::ValuesIn(kStrategies),
                                            ::testing::Values(384U, 768U, 4'096U)),
                         [](const auto& test) {
                           return fmt::format("{}_{}", std::get<Strategy>(test.param).name,
                                              std::get<std::size_t>(test.param));
                         });

// 0, or the exit code after printing what is missing: 2 when that is the card.
int OpenPlugin() {
  const auto plugin = LoadPluginForDevice(GivenOptions().plugin);
  if (!plugin.ok()) {
    fmt::print(stderr, "error: {}\n", std::string(plugin.status().message()));
    return IsNoCard(plugin.status()) ? 2 : 1;
  }
  Plugin() = *plugin;
  return 0;
}

int Main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  Options& options = GivenOptions();
  options.plugin = PluginBeside();
  CLI::App app{"The GPU plug-in on a real card, against the oracle and the plain scan"};
  app.add_option("--plugin", options.plugin, "Default: the one beside this program");
  app.add_option("--device", options.device, "As CUDA numbers them");
  app.add_option("--blas", options.blas, "cuBLAS, as for dlopen; default the toolkit's own name");
  app.add_option("--cases", options.cases, "Per strategy; default 2000");
  app.add_option("--seconds", options.seconds, "Per strategy, at most; default 20");
  app.add_option("--first-seed", options.first_seed, "Of the cases");
  app.add_option("--only-seed", options.only_seed, "This case alone, with every strategy");
  app.add_option("--large-rows", options.large_rows, "Of the large segment with 384 dimensions");
  app.add_option(
      "--batch-timeout", options.batch_timeout_s,
      "Seconds until the GPU counts as hanging; default 10, more under compute-sanitizer");
  app.add_option("--json", options.json_path, "File to write the outcomes to");
  CLI11_PARSE(app, argc, argv);
  if (const int code = OpenPlugin(); code != 0) return code;
  ::testing::UnitTest::GetInstance()->listeners().Append(&OutcomeFile::Get());
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace simile::bench::gpu

int main(int argc, char** argv) { return simile::bench::gpu::Main(argc, argv); }
