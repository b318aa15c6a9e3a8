// An index that is built in the background while it is searched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "backend/int8_fixture.h"
#include "backend/small_blocks.h"

namespace simile::backend::cpu {
namespace {

using ::testing::StartsWith;
using tests::kInForeground;
using tests::MakeSegment;
using tests::PaddedRows;
using tests::SeededRandom;
using tests::Specs;
using tests::UnitRows;

constexpr std::uint64_t kSeed = 101;
constexpr std::size_t kRowCount = 60'000;
constexpr std::size_t kDim = 64;

class Int8BuildTest : public tests::Int8Fixture {
 protected:
  static Int8Options InBackground() {
    Int8Options options = OptionsFor("");
    options.threads = 2;
    options.foreground_bytes_max = 0;
    options.small_pass_bytes = 0;
    return options;
  }
  static bool Scans(const std::string& engine) { return engine.starts_with("scan-"); }

  SeededRandom random_{kSeed};
  std::shared_ptr<PaddedRows> rows_ = UnitRows(kRowCount, kDim, random_);
  std::shared_ptr<PaddedRows> queries_ = UnitRows(9, kDim, random_);
  const std::vector<QuerySpec> specs_ = Specs(9, 10);
};

TEST_F(Int8BuildTest, AnswersThroughTheScanUntilItIsBuilt) {
  const auto backend = MakeInt8Backend(InBackground());
  // The first answer comes from the scan unless this thread is suspended for the whole build, which
  // does not happen three times in a row.
  bool scanned = false;
  for (int attempt = 0; attempt < 3 && !scanned; ++attempt) {
    const auto index = backend->MakeResident(MakeSegment(rows_));
    ASSERT_TRUE(index.ok());
    double built = 0;
    bool packed = false;
    constexpr int kTriesMax = 100'000;
    for (int tries = 0; !packed; ++tries) {
      ASSERT_LT(tries, kTriesMax) << "never built";
      const std::string_view named = (*index)->engine();
      ExpectTheScansAnswers(**index, MakeSegment(rows_), {queries_->view(), specs_}, "while built");
      ASSERT_FALSE(HasFatalFailure());
      if (named == (*index)->engine()) {  // else it was built meanwhile
        EXPECT_EQ(Scans(Engine(0)), Scans(std::string(named)));
      }
      packed = !Scans(Engine(0));
      scanned = scanned || !packed;
      const absl::StatusOr<double> share = (*index)->Built();
      ASSERT_TRUE(share.ok()) << share.status();
      ASSERT_GE(*share, built) << "it only grows";
      built = *share;
      std::this_thread::yield();
    }
    EXPECT_THAT(Engine(0), StartsWith("int8-"));
    EXPECT_EQ(*(*index)->Built(), 1.0);
  }
  EXPECT_TRUE(scanned);
}

TEST_F(Int8BuildTest, IsBuiltBeforeItAnswersInTheForeground) {
  Int8Options options = InBackground();
  options.foreground_bytes_max = kInForeground;
  const auto backend = MakeInt8Backend(options);
  const auto index = backend->MakeResident(MakeSegment(rows_));
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(*(*index)->Built(), 1.0);
  ExpectTheScansAnswers(**index, MakeSegment(rows_), {queries_->view(), specs_}, "foreground");
  EXPECT_THAT(Engine(0), StartsWith("int8-"));
}

TEST_F(Int8BuildTest, StopsCleanlyWhenDestroyedWhileBuilding) {
  const auto backend = MakeInt8Backend(InBackground());
  std::shared_ptr<PaddedRows> rows = rows_;
  for (int round = 0; round < 12; ++round) {
    auto index = backend->MakeResident(MakeSegment(rows));
    ASSERT_TRUE(index.ok());
    // At another stage each time, from "not begun" to "nearly done".
    for (int tries = 0; tries < 100'000; ++tries) {
      const absl::StatusOr<double> share = (*index)->Built();
      if (!share.ok() || *share >= round / 12.0) break;
      std::this_thread::yield();
    }
    index->reset();
  }
  const std::weak_ptr<PaddedRows> watch = rows;
  rows.reset();
  rows_.reset();
  EXPECT_TRUE(watch.expired()) << "something still holds the rows";
}

TEST_F(Int8BuildTest, BuildsAndSearchesSeveralSegmentsAtOnce) {
  const auto backend = MakeInt8Backend(InBackground());
  const auto first = backend->MakeResident(MakeSegment(rows_));
  const auto second = backend->MakeResident(MakeSegment(rows_, 1'000'000));
  ASSERT_TRUE(first.ok() && second.ok());
  auto search = [&](const SegmentIndex& index, Row first_row) {
    SearchResult result;
    for (int i = 0; i < 30; ++i) {
      ASSERT_TRUE(index.Search({queries_->view(), specs_}, result).ok());
      ASSERT_EQ(result.Hits(0).size(), 10U);
      ASSERT_GE(result.Hits(0)[0].row, first_row);
      ASSERT_LT(result.Hits(0)[0].row, first_row + kRowCount);
    }
  };
  std::thread other([&] { search(**second, 1'000'000); });
  search(**first, 0);
  other.join();
}

}  // namespace
}  // namespace simile::backend::cpu
