// The ranges that a profiler shows of a search: named, and closed whatever happens.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/emulated_gpu.h"
#include "backend/segments.h"
#include "emulated_cuda/emulated_device.h"

namespace simile::backend {
namespace {

using emulated_cuda::RangeCounts;
using tests::CardOf;
using tests::ForcedStrategy;

constexpr std::size_t kRows = 700;
constexpr std::size_t kDim = 32;

class ProfilerRangesTest : public ::testing::Test {
 protected:
  // On an H200.
  void Open(ForcedStrategy strategy, std::size_t rows = kRows) {
    tests::ResetEmulatedGpu(CardOf(0), 3);
    auto opened = tests::OpenEmulatedGpu(tests::EmulatedOptions(strategy));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    gpu_ = *std::move(opened);
    tests::SeededRandom random(5);
    auto resident = gpu_->MakeResident(tests::MakeSegment(tests::UnitRows(rows, kDim, random)));
    ASSERT_TRUE(resident.ok()) << resident.status().ToString();
    on_gpu_ = *resident;
    query_ = tests::UnitRows(1, kDim, random);
  }

  absl::Status Search(std::uint32_t k) {
    const std::vector<QuerySpec> specs = tests::Specs(1, k);
    SearchResult result;
    return on_gpu_->Search({query_->view(), specs}, result);
  }

 private:
  std::unique_ptr<Backend> gpu_;
  std::shared_ptr<const SegmentIndex> on_gpu_;
  std::shared_ptr<const tests::PaddedRows> query_;
};

TEST_F(ProfilerRangesTest, NameTheLoad) {
  Open(ForcedStrategy::kGemm);
  EXPECT_EQ(RangeCounts().at("load rows"), 1U);
}

TEST_F(ProfilerRangesTest, NameAGemmPassItsFinishAndItsCopies) {
  Open(ForcedStrategy::kGemm);
  ASSERT_TRUE(Search(10).ok());
  const std::map<std::string, std::size_t> ranges = RangeCounts();
  const std::string pass = "search/fp16-gemm-sm90";
  for (const char* part :
       {"/start/copy in", "/start/tiles", "/start/finish", "/start/copy out", "/await"}) {
    EXPECT_EQ(ranges.count(pass + part), 1U) << part;
  }
  EXPECT_EQ(ranges.count("search/fill"), 1U);
  EXPECT_EQ(emulated_cuda::OpenRanges(), 0U);
}

TEST_F(ProfilerRangesTest, NameAScanPassAndItsFinish) {
  Open(ForcedStrategy::kRowScan, 30'000);
  ASSERT_TRUE(Search(300).ok());  // too many hits for mapped memory
  const std::map<std::string, std::size_t> ranges = RangeCounts();
  for (const char* part : {"/start/copy in", "/start/scan", "/start/finish", "/await"}) {
    EXPECT_EQ(ranges.count(std::string("search/fp16-scan-sm90") + part), 1U) << part;
  }
}

TEST_F(ProfilerRangesTest, NameCanonicalScores) {
  Open(ForcedStrategy::kCanonical);
  ASSERT_TRUE(Search(10).ok());
  EXPECT_EQ(RangeCounts().at("search/scan-sm90"), 1U);
  EXPECT_EQ(RangeCounts().at("search/scan-sm90/copy in"), 1U);
}

// The first run enqueues each part, the second captures them, later ones replay the graph.
TEST_F(ProfilerRangesTest, AReplayedPassIsOneRange) {
  Open(ForcedStrategy::kGemm);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Search(10).ok());
  const std::map<std::string, std::size_t> before = RangeCounts();
  ASSERT_TRUE(Search(10).ok());
  const std::map<std::string, std::size_t> after = RangeCounts();
  const std::string pass = "search/fp16-gemm-sm90";
  EXPECT_EQ(after.at(pass), before.at(pass) + 1);
  EXPECT_EQ(after.at(pass + "/start/tiles"), before.at(pass + "/start/tiles"));
}

TEST_F(ProfilerRangesTest, AFailedCallLeavesNoneOpen) {
  Open(ForcedStrategy::kGemm);
  emulated_cuda::InjectFault({.error = cudaErrorLaunchOutOfResources, .name = "TopkFp16"});
  EXPECT_FALSE(Search(10).ok());
  EXPECT_GT(RangeCounts().count("search/fp16-gemm-sm90/start/tiles"), 0U);
  EXPECT_EQ(emulated_cuda::OpenRanges(), 0U);
}

}  // namespace
}  // namespace simile::backend
