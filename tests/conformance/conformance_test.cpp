// Every backend answers every case with the oracle's rows and bits. To add a backend, add a line to
// kBackends.
//
// A run covers a quarter of the cases (rotation.h).
// A failure prints the case's seed; SIMILE_CONFORMANCE_SEED=<seed> runs that case alone.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "backend/cpu/int8_backend.h"
#include "backend/cpu/int8_kernels.h"
#include "backend/cpu/scan_backend.h"
#include "backend/failover_backend.h"
#include "backend/fake_gpu.h"
#include "backend/small_blocks.h"
#include "certificate/canonical_score.h"
#include "certificate/seeded_random.h"
#include "conformance/conformance_case.h"
#include "conformance/conformance_check.h"
#include "conformance/rotation.h"

namespace simile::conformance {
namespace {

// Each backend has kShards * kCasesPerShard = 10,000 cases; shards run in parallel under ctest.
constexpr std::size_t kShards = 4;
constexpr std::size_t kCasesPerShard = 2'500;
constexpr std::uint64_t kFirstSeed = 1'000'000;

struct BackendUnderTest {
  const char* name;
  const char* engine;  // how the engine's name begins on answers of what is forced
  // Null when this machine cannot run it.
  std::function<std::unique_ptr<Backend>()> make;
};

std::function<std::unique_ptr<Backend>()> Scan(const char* isa, unsigned threads) {
  return [isa, threads]() -> std::unique_ptr<Backend> {
    const certificate::CanonicalKernel* kernel = certificate::FindCanonicalKernel(isa);
    if (kernel == nullptr) return nullptr;
    return backend::cpu::MakeScanBackend(*kernel, threads);
  };
}

// Every segment is packed.
std::function<std::unique_ptr<Backend>()> Int8(const char* isa, unsigned threads) {
  return [isa, threads]() -> std::unique_ptr<Backend> {
    if (backend::cpu::FindInt8Kernel(isa) == nullptr) return nullptr;
    return backend::cpu::MakeInt8Backend(tests::SmallBlocks(threads, isa));
  };
}

// The same with half a byte a dimension, for the smallest batches. Most answers still name int8,
// because int4 drops few of so few rows; instruction_sets.cpp counts the scans of int4.
//   isa  "" for the two kernels that the server chooses
std::function<std::unique_ptr<Backend>()> Int4(const char* isa, unsigned threads) {
  return [isa, threads]() -> std::unique_ptr<Backend> {
    if (backend::cpu::OptionsFor(isa).large == nullptr) return nullptr;
    backend::cpu::Int8Options options = tests::SmallBlocks(threads, isa);
    options.tuning.int4_from_code_bytes = 0;
    return backend::cpu::MakeInt8Backend(options);
  };
}

// The same, where every thread has queries of its own.
std::function<std::unique_ptr<Backend>()> Int8Shares(unsigned threads) {
  return [threads]() -> std::unique_ptr<Backend> {
    backend::cpu::Int8Options options = tests::SmallBlocks(threads);
    options.tuning.queries_of_thread_min = 1;
    return backend::cpu::MakeInt8Backend(options);
  };
}

// Candidates are scored row by row, whatever the batch wants.
//   queries_of_thread_min  1: every thread has queries of its own
std::function<std::unique_ptr<Backend>()> Int8ByRow(unsigned threads,
                                                    std::size_t queries_of_thread_min) {
  return [=]() -> std::unique_ptr<Backend> {
    backend::cpu::Int8Options options = tests::SmallBlocks(threads);
    options.row_order_hits_per_row = 0;
    options.tuning.queries_of_thread_min = queries_of_thread_min;
    return backend::cpu::MakeInt8Backend(options);
  };
}

// The CPU behind a GPU that is full at one call in four and fails at another.
std::function<std::unique_ptr<Backend>()> Failover() {
  return []() -> std::unique_ptr<Backend> {
    using Call = tests::FakeGpuControl::Call;
    auto control = std::make_shared<tests::FakeGpuControl>();
    tests::SeededRandom random(kFirstSeed);
    for (std::size_t i = 0; i < 2 * kCasesPerShard; ++i) {
      for (const Call call : {Call::kLoad, Call::kSearch, Call::kScore}) {
        const std::size_t draw = random.Below(4);
        control->Next(call, draw == 0   ? tests::GpuFull()
                            : draw == 1 ? tests::GpuFailed()
                                        : absl::OkStatus());
      }
    }
    // The observer owns the control that the fake borrows.
    return backend::MakeFailoverBackend(tests::MakeFakeGpu(*control), Int8("portable", 1)(),
                                        backend::WhenFull::kCpu,
                                        [control](const backend::GpuEvent&) {});
  };
}

const BackendUnderTest kBackends[] = {
    {"failover_of_a_failing_gpu", "int8-portable", Failover()},
    {"int8_amx_1_thread", "int8-amx", Int8("amx", 1)},
    {"int8_amx_2_threads", "int8-amx", Int8("amx", 2)},
    {"int8_avx512vnni_2_threads", "int8-avx512vnni", Int8("avx512vnni", 2)},
    {"int8_avxvnni_2_threads", "int8-avxvnni", Int8("avxvnni", 2)},
    {"int8_avx2_2_threads", "int8-avx2", Int8("avx2", 2)},
    {"int8_by_row_2_threads", "int8-", Int8ByRow(2, 256)},
    {"int8_by_row_shares_of_3_threads", "int8-", Int8ByRow(3, 1)},
    {"int8_neondot_2_threads", "int8-neondot", Int8("neondot", 2)},
    {"int8_portable_1_thread", "int8-portable", Int8("portable", 1)},
    {"int8_portable_3_threads", "int8-portable", Int8("portable", 3)},
    {"int8_shares_of_3_threads", "int8-", Int8Shares(3)},
    {"int4_as_served_2_threads", "int8-", Int4("", 2)},
    {"int4_avx512vnni_2_threads", "int8-avx512vnni", Int4("avx512vnni", 2)},
    {"int4_avxvnni_1_thread", "int8-avxvnni", Int4("avxvnni", 1)},
    {"int4_avx2_2_threads", "int8-avx2", Int4("avx2", 2)},
    {"int4_neondot_1_thread", "int8-neondot", Int4("neondot", 1)},
    {"int4_portable_1_thread", "int8-portable", Int4("portable", 1)},
    {"scan_avx512_1_thread", "scan-avx512", Scan("avx512", 1)},
    {"scan_avx512_2_threads", "scan-avx512", Scan("avx512", 2)},
    {"scan_avx2_1_thread", "scan-avx2", Scan("avx2", 1)},
    {"scan_avx2_3_threads", "scan-avx2", Scan("avx2", 3)},
    {"scan_neon_1_thread", "scan-neon", Scan("neon", 1)},
    {"scan_neon_2_threads", "scan-neon", Scan("neon", 2)},
    {"scan_portable_1_thread", "scan-portable", Scan("portable", 1)},
    {"scan_portable_2_threads", "scan-portable", Scan("portable", 2)},
};

void PrintTo(const BackendUnderTest& backend, std::ostream* out) { *out << backend.name; }

class ConformanceTest : public ::testing::TestWithParam<std::tuple<BackendUnderTest, std::size_t>> {
};

TEST_P(ConformanceTest, AnswersWithTheOraclesRowsAndBits) {
  const auto& [under_test, shard] = GetParam();
  const std::unique_ptr<Backend> backend = under_test.make();
  if (backend == nullptr) GTEST_SKIP() << "this machine cannot run " << under_test.name;

  SearchResult result;  // one for all cases: see ExpectConforms
  if (const char* seed = std::getenv("SIMILE_CONFORMANCE_SEED")) {
    EngineTally tally;
    ExpectConforms(*backend, std::strtoull(seed, nullptr, 10), result, tally);
    return;
  }
  const Rotation rotation = Rotation::FromEnvironment();
  const std::uint64_t first_seed = kFirstSeed + shard * kCasesPerShard;
  EngineTally tally;
  std::size_t cases = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + kCasesPerShard; ++seed) {
    if (!rotation.Covers(seed)) continue;
    ExpectConforms(*backend, seed, result, tally);
    if (HasFatalFailure()) {
      std::printf("replay with SIMILE_CONFORMANCE_SEED=%" PRIu64 "\n", seed);
      return;
    }
    ++cases;
  }
  std::printf("%s (%s on %s): %zu of the %zu cases from seed %" PRIu64 " (rotation %s), %" PRIu64
              " queries by %s\n",
              under_test.name, backend->info().engine.c_str(), backend->info().device.c_str(),
              cases, kCasesPerShard, first_seed, rotation.text().c_str(),
              tally.StartingWith(under_test.engine), under_test.engine);
  EXPECT_GT(tally.StartingWith(under_test.engine), 0U) << "no query ran on what the case forces";
  EXPECT_GT(tally.pauses(), 0U) << "no search was paused";
}

INSTANTIATE_TEST_SUITE_P(Backends, ConformanceTest,
                         ::testing::Combine(::testing::ValuesIn(kBackends),
                                            ::testing::Range<std::size_t>(0, kShards)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + "_shard_" +
                                  std::to_string(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace simile::conformance
