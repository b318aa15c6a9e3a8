// Every backend answers every case with the oracle's rows and bits. To add a backend, add a line to
// kBackends.
//
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

namespace simile::conformance {
namespace {

// Each backend sees kShards * kCasesPerShard = 10,000 cases; shards run in parallel under ctest.
constexpr std::size_t kShards = 4;
constexpr std::size_t kCasesPerShard = 2'500;
constexpr std::uint64_t kFirstSeed = 1'000'000;

struct BackendUnderTest {
  const char* name;
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
    return backend::cpu::MakeInt8Backend(testing::SmallBlocks(threads, isa));
  };
}

// The same with half a byte a dimension, for the smallest batches.
//   isa  "" for the two kernels that the server takes by itself
std::function<std::unique_ptr<Backend>()> Int4(const char* isa, unsigned threads) {
  return [isa, threads]() -> std::unique_ptr<Backend> {
    if (backend::cpu::OptionsFor(isa).large == nullptr) return nullptr;
    backend::cpu::Int8Options options = testing::SmallBlocks(threads, isa);
    options.nibbles_from_code_bytes = 0;
    return backend::cpu::MakeInt8Backend(options);
  };
}

// The same, where every thread has queries of its own.
std::function<std::unique_ptr<Backend>()> Int8Shares(unsigned threads) {
  return [threads]() -> std::unique_ptr<Backend> {
    backend::cpu::Int8Options options = testing::SmallBlocks(threads);
    options.queries_of_thread_min = 1;
    return backend::cpu::MakeInt8Backend(options);
  };
}

// The CPU behind a GPU that has no room for one thing in four and fails at another.
std::function<std::unique_ptr<Backend>()> Failover() {
  return []() -> std::unique_ptr<Backend> {
    using Call = testing::FakeGpuControl::Call;
    auto control = std::make_shared<testing::FakeGpuControl>();
    testing::SeededRandom random(kFirstSeed);
    for (std::size_t i = 0; i < 2 * kCasesPerShard; ++i) {
      for (const Call call : {Call::kLoad, Call::kSearch, Call::kScore}) {
        const std::size_t draw = random.Below(4);
        control->Next(call, draw == 0   ? testing::GpuFull()
                            : draw == 1 ? testing::GpuFailed()
                                        : absl::OkStatus());
      }
    }
    // The observer keeps what the fake borrows.
    return backend::MakeFailoverBackend(testing::MakeFakeGpu(*control), Int8("portable", 1)(),
                                        backend::WhenFull::kCpu,
                                        [control](const backend::GpuEvent&) {});
  };
}

const BackendUnderTest kBackends[] = {
    {"failover_of_a_failing_gpu", Failover()},
    {"int8_amx_1_thread", Int8("amx", 1)},
    {"int8_amx_2_threads", Int8("amx", 2)},
    {"int8_avx512vnni_2_threads", Int8("avx512vnni", 2)},
    {"int8_avxvnni_2_threads", Int8("avxvnni", 2)},
    {"int8_avx2_2_threads", Int8("avx2", 2)},
    {"int8_portable_1_thread", Int8("portable", 1)},
    {"int8_portable_3_threads", Int8("portable", 3)},
    {"int8_shares_of_3_threads", Int8Shares(3)},
    {"int4_as_served_2_threads", Int4("", 2)},
    {"int4_avx512vnni_2_threads", Int4("avx512vnni", 2)},
    {"int4_avxvnni_1_thread", Int4("avxvnni", 1)},
    {"int4_avx2_2_threads", Int4("avx2", 2)},
    {"int4_portable_1_thread", Int4("portable", 1)},
    {"scan_avx512_1_thread", Scan("avx512", 1)},
    {"scan_avx512_2_threads", Scan("avx512", 2)},
    {"scan_avx2_1_thread", Scan("avx2", 1)},
    {"scan_avx2_3_threads", Scan("avx2", 3)},
    {"scan_portable_1_thread", Scan("portable", 1)},
    {"scan_portable_2_threads", Scan("portable", 2)},
};

void PrintTo(const BackendUnderTest& backend, std::ostream* out) { *out << backend.name; }

class ConformanceTest : public ::testing::TestWithParam<std::tuple<BackendUnderTest, std::size_t>> {
};

TEST_P(ConformanceTest, AnswersWithTheOraclesRowsAndBits) {
  const auto& [under_test, shard] = GetParam();
  const std::unique_ptr<Backend> backend = under_test.make();
  if (backend == nullptr) GTEST_SKIP() << "this machine cannot run " << under_test.name;

  SearchResult result;  // one for all cases: whatever an answer leaves behind meets the next
  if (const char* seed = std::getenv("SIMILE_CONFORMANCE_SEED")) {
    ExpectConforms(*backend, std::strtoull(seed, nullptr, 10), result);
    return;
  }
  const std::uint64_t first_seed = kFirstSeed + shard * kCasesPerShard;
  for (std::size_t i = 0; i < kCasesPerShard; ++i) {
    ExpectConforms(*backend, first_seed + i, result);
    if (HasFatalFailure()) {
      std::printf("replay with SIMILE_CONFORMANCE_SEED=%" PRIu64 "\n", first_seed + i);
      return;
    }
  }
  std::printf("%s (%s on %s): %zu cases from seed %" PRIu64 "\n", under_test.name,
              backend->info().engine.c_str(), backend->info().device.c_str(), kCasesPerShard,
              first_seed);
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
