// The films end to end, and the promises of a load: plan, memory, notes, progress.
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "data/load/load.h"

namespace simile::data {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;

const fs::path kFilms = fs::path(SIMILE_SOURCE_DIR) / "examples/films";

class FilmsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const absl::StatusOr<DatasetPlan> plan = PlanDataset(kFilms, Limits{});
    ASSERT_TRUE(plan.ok()) << plan.status();
    plan_ = *plan;
    absl::StatusOr<Dataset> films = LoadDataset(plan_, Limits{}, [](const ReadProgress& progress) {
      bytes_read_.push_back(progress.bytes_read);
      bytes_total_ = progress.bytes_total;
      files_.insert(std::string(progress.file));
    });
    ASSERT_TRUE(films.ok()) << films.status();
    films_ = *std::move(films);
  }
  static void TearDownTestSuite() { films_ = Dataset(); }

  static inline DatasetPlan plan_;
  static inline Dataset films_;
  static inline std::vector<std::uint64_t> bytes_read_;
  static inline std::uint64_t bytes_total_ = 0;
  static inline std::set<std::string> files_;
};

TEST_F(FilmsTest, LoadsItemsAndUsers) {
  EXPECT_EQ(films_.metric, Metric::kCosine);
  EXPECT_EQ(films_.vectors.row_count(), 5'000U);
  EXPECT_EQ(films_.vectors.dim(), 384U);
  EXPECT_EQ(films_.ids.size(), 5'000U);
  EXPECT_EQ(films_.ids.Id(0), "feeding-sea-lions-1900");
  EXPECT_EQ(films_.ids.Find("feeding-sea-lions-1900"), Row{0});
  EXPECT_EQ(films_.payload.row_count(), 5'000U);
  EXPECT_EQ(films_.profiles.ids.size(), 500U);
  EXPECT_EQ(films_.profiles.ids.Find("user_00042"), Row{41});
  EXPECT_EQ(films_.profiles.vectors.row_count(), 500U);
  EXPECT_EQ(films_.profiles.vectors.dim(), 384U);
  EXPECT_EQ(films_.profiles.seen.pair_count(), 4'444U);
  EXPECT_THAT(films_.lookup_fields, ElementsAre("title"));
}

TEST_F(FilmsTest, HasTheFieldsAndTheirTypes) {
  std::vector<std::string> described;
  for (const FieldInfo& field : films_.payload.fields()) {
    described.push_back(fmt::format("{}: {}", field.name, NameOf(field.type)));
    EXPECT_EQ(field.values.count(), 5'000U);
  }
  EXPECT_THAT(described, ElementsAre("cast: list of keywords", "genres: list of keywords",
                                     "media_id: keyword", "title: keyword", "year: integer"));
  EXPECT_EQ(films_.payload.ReadField(0, *films_.payload.FieldNumber("title")).value,
            PayloadValue{std::string("Feeding Sea Lions")}.value);
}

TEST_F(FilmsTest, NormalizesEveryRow) {
  for (const Matrix* const matrix : {&films_.vectors, &films_.profiles.vectors}) {
    for (std::size_t row = 0; row < matrix->row_count(); ++row) {
      double sum = 0;
      for (const float value : matrix->view()[row]) {
        sum += static_cast<double>(value) * static_cast<double>(value);
      }
      ASSERT_NEAR(std::sqrt(sum), 1, 1e-7) << row;
    }
  }
}

TEST_F(FilmsTest, ReportsWhatWasNormalized) {
  EXPECT_THAT(
      films_.notes,
      ElementsAre(HasSubstr("content_vectors.npy: 5,000 rows normalized; their lengths were "
                            "0.9999"),
                  HasSubstr("preference_vectors.npy: 500 rows normalized")));
}

TEST_F(FilmsTest, PlansTheMemoryOfTheLoad) {
  EXPECT_EQ(plan_.row_count, 5'000U);
  EXPECT_EQ(plan_.dim, 384U);
  EXPECT_EQ(plan_.user_count, 500U);
  EXPECT_EQ(plan_.vector_bytes, films_.vectors.bytes());
}

TEST_F(FilmsTest, ReportsProgressFromStartToEnd) {
  ASSERT_FALSE(bytes_read_.empty());
  EXPECT_TRUE(std::is_sorted(bytes_read_.begin(), bytes_read_.end()));
  EXPECT_LT(bytes_read_.front(), bytes_total_ / 5);
  EXPECT_EQ(bytes_read_.back(), bytes_total_);
  EXPECT_EQ(files_, (std::set<std::string>{"", plan_.files.vectors, plan_.files.payload,
                                           plan_.files.user_ids, plan_.files.user_vectors,
                                           plan_.files.interactions}));
}

TEST_F(FilmsTest, IsNotLoadedWhenAFileHasChangedSinceThePlan) {
  DatasetPlan plan = plan_;
  plan.row_count = 4'999;
  EXPECT_EQ(LoadDataset(plan, Limits{}, nullptr).status(),
            base::Error(base::ErrorReason::kFilesChanged,
                        "content_vectors.npy: has changed since the load was planned: 5,000 rows "
                        "of 384 dimensions now, 4,999 of 384 then; load again"));
}

}  // namespace
}  // namespace simile::data
