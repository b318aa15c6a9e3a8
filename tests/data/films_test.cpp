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
#include "data/inspect.h"
#include "data/load.h"
#include "files/scratch_folder.h"

namespace simile::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::Pair;

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
    described.push_back(field.name + " " + field.type);
    EXPECT_EQ(field.rows, 5'000U);
  }
  EXPECT_THAT(described, ElementsAre("cast list", "genres list", "media_id string", "title string",
                                     "year integer"));
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
  // The dataset has no look-up index; folded titles and their ends are counted instead.
  std::uint64_t titles = 5'000 * sizeof(std::uint64_t);
  for (Row row = 0; row < 5'000; ++row) {
    const PayloadValue title = films_.payload.ReadField(row, *films_.payload.FieldNumber("title"));
    titles += std::get<std::string>(title.value).size() + 1;
  }
  const auto payload = static_cast<double>(films_.payload.bytes() + films_.ids.bytes() + titles);
  EXPECT_THAT(static_cast<double>(plan_.payload_bytes),
              AllOf(Ge(payload * 0.7), Le(payload * 1.3)));
  const auto users = static_cast<double>(
      films_.profiles.vectors.bytes() + films_.profiles.ids.bytes() + films_.profiles.seen.bytes());
  EXPECT_THAT(static_cast<double>(plan_.user_bytes), AllOf(Ge(users * 0.7), Le(users * 1.3)));
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

TEST(InspectTest, DescribesVectors) {
  const absl::StatusOr<Inspection> inspection =
      InspectFile(kFilms / "content_vectors.npy", Limits{});
  ASSERT_TRUE(inspection.ok()) << inspection.status();
  EXPECT_EQ(inspection->kind, "vectors");
  EXPECT_TRUE(inspection->status.ok());
  EXPECT_THAT(inspection->facts, ElementsAre(Pair("file bytes", "3,840,128"), Pair("rows", "5,000"),
                                             Pair("dimensions", "384"), Pair("type", "float16"),
                                             Pair("lengths", HasSubstr("0.9999"))));
}

TEST(InspectTest, DescribesPayloadInteractionsAndIds) {
  const absl::StatusOr<Inspection> payload = InspectFile(kFilms / "metadata.jsonl", Limits{});
  ASSERT_TRUE(payload.ok()) << payload.status();
  EXPECT_EQ(payload->kind, "payload");
  EXPECT_THAT(payload->facts, Contains(Pair("lines", "5,000")));
  EXPECT_THAT(payload->facts, Contains(Pair("ids from", "\"media_id\"")));
  EXPECT_THAT(payload->facts, Contains(Pair("field year", "integer, in 5,000 rows")));
  const absl::StatusOr<Inspection> interactions =
      InspectFile(kFilms / "interactions.jsonl", Limits{});
  ASSERT_TRUE(interactions.ok()) << interactions.status();
  EXPECT_EQ(interactions->kind, "interactions");
  EXPECT_THAT(interactions->facts, Contains(Pair("lines", "4,444")));
  const absl::StatusOr<Inspection> ids = InspectFile(kFilms / "user_ids.json", Limits{});
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(ids->kind, "ids");
  EXPECT_THAT(ids->facts, Contains(Pair("last id", "\"user_00500\"")));
}

TEST(InspectTest, ReportsTheErrorOfALoad) {
  const absl::StatusOr<Inspection> inspection =
      InspectFile(fs::path(SIMILE_SOURCE_DIR) / "tests/data/corpus/npy/bad/nan.npy", Limits{});
  ASSERT_TRUE(inspection.ok());
  EXPECT_THAT(inspection->facts, Contains(Pair("rows", "2")));
  EXPECT_EQ(
      std::string(inspection->status.message()),
      "nan.npy: row 1 holds NaN at column 1; vectors must be finite (1 of 2 rows is affected)");
}

TEST(InspectTest, PlansAFolder) {
  const absl::StatusOr<Inspection> inspection = InspectFile(kFilms, Limits{});
  ASSERT_TRUE(inspection.ok());
  EXPECT_EQ(inspection->kind, "collection");
  EXPECT_TRUE(inspection->status.ok());
  EXPECT_THAT(inspection->facts, Contains(Pair("users", "500")));
  const ScratchFolder empty;
  EXPECT_EQ(base::ReasonOf(InspectFile(empty.path(), Limits{})->status),
            base::ErrorReason::kInvalidFiles);
}

TEST(InspectTest, RefusesFilesItCannotOpenOrRead) {
  const ScratchFolder folder;
  folder.Write("notes.txt", "x");
  EXPECT_EQ(InspectFile(folder.path() / "none.npy", Limits{}).status(),
            absl::NotFoundError("none.npy: no such file"));
  EXPECT_EQ(std::string(InspectFile(folder.path() / "notes.txt", Limits{}).status().message()),
            "notes.txt: is of no kind that is read here: .npy, .safetensors, .jsonl, .json, or a "
            "folder");
}

}  // namespace
}  // namespace simile::data
