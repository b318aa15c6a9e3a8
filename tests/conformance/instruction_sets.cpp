// Forces every instruction set of the kernel tables in turn, runs conformance cases on it and
// prints a line for each: how often its kernels were called, or why it was skipped.
//
// TEST_REQUIRED_ISAS=avx512vnni,avx2 makes the program fail when one of these did not run.
// Exits with 1 on that, or when a case fails.
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "backend/counted_kernel.h"
#include "backend/cpu/int8_backend.h"
#include "backend/cpu/int8_kernels.h"
#include "backend/cpu/scan_backend.h"
#include "backend/small_blocks.h"
#include "certificate/canonical_score.h"
#include "conformance/conformance_check.h"

#if defined(SIMILE_EMULATED_AVX512)
namespace simile::certificate {
// canonical_score_avx512.cpp compiled with SIMD Everywhere (tests/certificate/CMakeLists.txt).
void ScoreBlockAvx512Emulated(const float* rows, std::size_t row_count, const float* queries,
                              std::size_t query_count, std::size_t padded_dim, float* scores);
void ScoreScatteredAvx512Emulated(const float* const* rows, std::size_t row_count,
                                  const float* query, std::size_t padded_dim, float* scores);
}  // namespace simile::certificate
#endif

namespace simile::conformance {
namespace {

constexpr std::uint64_t kFirstSeed = 3'000'000;
constexpr std::uint64_t kCases = 150;

struct InstructionSet {
  const char* name;         // as in the kernel tables
  const char* why_skipped;  // where no kernel of that name can run
};

// Counts the calls of a canonical kernel. One at a time.
class CountedCanonicalKernel {
 public:
  explicit CountedCanonicalKernel(const certificate::CanonicalKernel& kernel)
      : kernel_{kernel.isa, &ScoreBlock, kernel.score_scattered} {
    real_ = kernel.score_block;
    calls_ = 0;
  }
  const certificate::CanonicalKernel& kernel() const { return kernel_; }
  std::size_t calls() const { return calls_; }

 private:
  static void ScoreBlock(const float* rows, std::size_t row_count, const float* queries,
                         std::size_t query_count, std::size_t padded_dim, float* scores) {
    ++calls_;
    real_(rows, row_count, queries, query_count, padded_dim, scores);
  }

  static inline decltype(certificate::CanonicalKernel::score_block) real_ = nullptr;
  static inline std::atomic<std::size_t> calls_{0};
  certificate::CanonicalKernel kernel_;
};

// Failed expectations so far; there is no test that they could belong to.
int Failures() {
  return ::testing::UnitTest::GetInstance()->ad_hoc_test_result().total_part_count();
}

EngineTally RunCases(Backend& backend) {
  const int failures = Failures();
  EngineTally tally;
  SearchResult result;
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kCases; ++seed) {
    ExpectConforms(backend, seed, result, tally);
    if (Failures() > failures) {
      std::printf("replay with conformance_test and SIMILE_CONFORMANCE_SEED=%" PRIu64 "\n", seed);
      break;
    }
  }
  return tally;
}

// Returns what ran, for the table.
std::string RunInt8(const backend::cpu::Int8Kernel& kernel) {
  tests::CountedKernel counted(kernel);
  backend::cpu::Int8Options options = tests::SmallBlocks(2, kernel.isa);
  options.large = options.small = counted.kernel();
  options.tuning.int4_from_code_bytes = 0;
  const EngineTally tally = RunCases(*backend::cpu::MakeInt8Backend(options));
  const std::string isa = kernel.isa;
  EXPECT_GT(tally.StartingWith("int8-" + isa) + tally.StartingWith("int4-" + isa), 0U) << isa;
  EXPECT_GT(counted.scans(), counted.int4_scans()) << isa << " scanned no bytes";
  EXPECT_EQ(counted.int4_scans() > 0, kernel.reads_int4) << isa;
  return std::to_string(counted.scans() - counted.int4_scans()) + " scans of bytes, " +
         std::to_string(counted.int4_scans()) + " of int4";
}

std::string RunCanonical(const certificate::CanonicalKernel& kernel) {
  const CountedCanonicalKernel counted(kernel);
  const EngineTally tally = RunCases(*backend::cpu::MakeScanBackend(counted.kernel(), 2));
  const std::string isa(kernel.isa);
  EXPECT_GT(tally.StartingWith("scan-" + isa), 0U) << isa;
  EXPECT_GT(counted.calls(), 0U) << isa;
  return std::to_string(counted.calls()) + " canonical blocks";
}

void Print(const std::string& name, const std::string& outcome) {
  std::printf("%-13s %s\n", name.c_str(), outcome.c_str());
}

//   failures  those before it ran
void PrintRun(const std::string& name, const std::string& outcome, int failures) {
  Print(name, (Failures() > failures ? "FAILED: " : "ran: ") + outcome);
}

// Runs the kernels of one instruction set and returns whether there was any.
bool Run(const InstructionSet& set) {
  const int failures = Failures();
  std::string outcome;
  if (const auto* kernel = backend::cpu::FindInt8Kernel(set.name)) outcome = RunInt8(*kernel);
  if (const auto* kernel = certificate::FindCanonicalKernel(set.name))
    outcome += (outcome.empty() ? "" : ", ") + RunCanonical(*kernel);
  if (outcome.empty()) {
    Print(set.name, std::string("skipped: ") + set.why_skipped);
    return false;
  }
  PrintRun(set.name, outcome, failures);
  return true;
}

std::set<std::string> RunAll() {
  const std::string why_no_amx(backend::cpu::WhyNoAmx());
  const InstructionSet sets[] = {{"amx", why_no_amx.c_str()},
                                 {"avx512vnni", "the processor has no AVX-512 VNNI"},
                                 {"avxvnni", "the processor has no AVX-VNNI"},
                                 {"avx512", "the processor has no AVX-512"},
                                 {"avx2", "the processor has no AVX2"},
                                 {"neondot", "the processor has no dot product of NEON"},
                                 {"neon", "the processor has no NEON"},
                                 {"portable", ""}};
  std::set<std::string> ran;
  for (const InstructionSet& set : sets) {
    if (Run(set)) ran.insert(set.name);
  }
#if defined(SIMILE_EMULATED_AVX512)
  if (certificate::FindCanonicalKernel("avx2") != nullptr) {
    const int failures = Failures();
    PrintRun("avx512-simde",
             RunCanonical({"avx512-simde", &certificate::ScoreBlockAvx512Emulated,
                           &certificate::ScoreScatteredAvx512Emulated}),
             failures);
    ran.insert("avx512-simde");
  } else {
    Print("avx512-simde", "skipped: the emulation of AVX-512 needs AVX2");
  }
#else
  Print("avx512-simde", "skipped: not built (it needs x86-64 and SIMD Everywhere)");
#endif
  return ran;
}

bool HasRequired(const std::set<std::string>& ran) {
  const char* required = std::getenv("TEST_REQUIRED_ISAS");
  std::istringstream names(required == nullptr ? "" : required);
  bool complete = true;
  for (std::string name; std::getline(names, name, ',');) {
    if (name.empty() || ran.contains(name)) continue;
    std::fprintf(stderr, "TEST_REQUIRED_ISAS names %s, which did not run\n", name.c_str());
    complete = false;
  }
  return complete;
}

}  // namespace
}  // namespace simile::conformance

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const auto ran = simile::conformance::RunAll();
  return simile::conformance::HasRequired(ran) && !::testing::Test::HasFailure() ? 0 : 1;
}
