#include "filter/filters.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unasked_work.h"
#include "data/load/load.h"
#include "filter/parser.h"
#include "filter/payload_rows.h"

namespace simile::filter {
namespace {

using testing::ElementsAre;

using MaskPtr = std::shared_ptr<const RowMask>;

// The rows that pass a call's only filter.
absl::StatusOr<MaskPtr> FindRows(const Filters& filters, std::string_view text) {
  base::LongWork work = tests::UnaskedWork();
  const auto filter = filters.Prepare(text, filters.payload(), work);
  if (!filter.ok()) return filter.status();
  absl::Status status = filters.CheckLooks(filter->looks, filters.payload());
  if (!status.ok()) return status;
  return filters.Rows(*filter, work);
}

// Four films and one without a payload.
class FiltersTest : public testing::Test {
 protected:
  FiltersTest() {
    dataset_.ids = data::IdIndex::OfRowNumbers(5);
    dataset_.payload = MakeTable({
        {{"title", Text("Solaris")},
         {"genres", Texts({"Drama", "Sci-Fi"})},
         {"year", Whole(1972)},
         {"box office", Real(1.5)},
         {"rating", Real(8.1)},
         {"released", Text("1972-03-20T00:00:00Z")},
         {"available", Flag(true)},
         {"cast", PayloadValue{PayloadObject{{"lead", Text("Banionis")}}}}},
        {{"title", Text("Solaris")}, {"genres", Texts({"Drama"})}, {"year", Whole(2002)}},
        {{"title", Text("Amélie")},
         {"genres", Texts({"Comedy"})},
         {"year", Whole(2001)},
         {"available", Flag(false)}},
        {{"title", Text("Heat")},
         {"genres", Texts({})},
         {"year", Whole(1995)},
         {"rating", Whole(8)}},
        {},
    });
    filters_ = Filters::Create(dataset_, "films");
  }

  std::vector<Row> Rows(const std::string& filter) const {
    const auto mask = FindRows(*filters_, filter);
    EXPECT_TRUE(mask.ok()) << filter << ": " << mask.status();
    std::vector<Row> rows;
    if (mask.ok()) (*mask)->ForEachAllowed(0, 5, [&](Row row) { rows.push_back(row); });
    return rows;
  }
  std::string Refusal(const std::string& filter) const {
    const auto mask = FindRows(*filters_, filter);
    EXPECT_EQ(mask.status().code(), absl::StatusCode::kInvalidArgument) << filter;
    return std::string(mask.status().message());
  }

  data::Dataset dataset_;
  std::unique_ptr<const Filters> filters_;
};

TEST_F(FiltersTest, FindTheRowsThatPass) {
  EXPECT_THAT(Rows("title = Solaris"), ElementsAre(0, 1));
  EXPECT_THAT(Rows("title = solaris"), ElementsAre());
  EXPECT_THAT(Rows("title = \"AMELIE\""), ElementsAre());
  EXPECT_THAT(Rows("folded(title) = \"AMELIE\""), ElementsAre(2));
  EXPECT_THAT(Rows("folded(title) != solaris"), ElementsAre(2, 3));
  EXPECT_THAT(Rows("folded(title) IN [SOLARIS, heat]"), ElementsAre(0, 1, 3));
  EXPECT_THAT(Rows("folded(title) NOT IN [SOLARIS, heat]"), ElementsAre(2, 4));
  EXPECT_THAT(Rows("folded(genres) = \"sci-fi\""), ElementsAre(0));
  EXPECT_THAT(Rows("title:\"lar\""), ElementsAre(0, 1));
  EXPECT_THAT(Rows("genres:\"sci-fi\""), ElementsAre(0));
  EXPECT_THAT(Rows("genres = Drama AND year > 1990"), ElementsAre(1));
  EXPECT_THAT(Rows("year IN [1972, 1995, 1000]"), ElementsAre(0, 3));
  EXPECT_THAT(Rows("year >= 1994.5 AND year < 2.002e3"), ElementsAre(2, 3));
  EXPECT_THAT(Rows("rating <= 8"), ElementsAre(3));
  EXPECT_THAT(Rows("rating > 1e-400 AND rating < +9"), ElementsAre(0, 3));
  EXPECT_THAT(Rows("released < \"1972-03-21\""), ElementsAre(0));
  EXPECT_THAT(Rows("available = true"), ElementsAre(0));
  EXPECT_THAT(Rows("available != true"), ElementsAre(2));
  EXPECT_THAT(Rows("has(cast)"), ElementsAre(0));
  EXPECT_THAT(Rows("cast.lead:BANIONIS"), ElementsAre(0));
  EXPECT_THAT(Rows("NOT \"cast.lead\" = Banionis"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Rows("id IN [\"4\", \"1\", \"unknown\"]"), ElementsAre(1, 4));
  EXPECT_THAT(Rows("id != \"4\" AND NOT year < 2000"), ElementsAre(1, 2));
}

// A comparison needs a value; NOT applies to all rows.
TEST_F(FiltersTest, FailEveryComparisonOfAMissingValue) {
  EXPECT_THAT(Rows("title != Solaris"), ElementsAre(2, 3));
  EXPECT_THAT(Rows("NOT title = Solaris"), ElementsAre(2, 3, 4));
  EXPECT_THAT(Rows("genres != Drama"), ElementsAre(2, 3));
  EXPECT_THAT(Rows("NOT has(rating)"), ElementsAre(1, 2, 4));
}

TEST_F(FiltersTest, NameWhatDoesNotFitTheCollection) {
  EXPECT_EQ(Refusal("genre:Drama"),
            "column 1: films has no field \"genre\". Did you mean \"genres\"? Fields: available, "
            "\"box office\", cast, cast.lead, genres, rating, released, title, year.");
  EXPECT_EQ(
      Refusal("genres.k:Drama"),
      "column 1: films has no field \"genres.k\". genres is of type list of keywords, and no "
      "fields inside it are read. Fields: available, \"box office\", cast, cast.lead, genres, "
      "rating, released, title, year.");
  EXPECT_EQ(Refusal("year > 1990 AND title > \"M\""),
            "column 17: title is a keyword, which has no order; > is for integers, numbers and "
            "times. Write =, !=, : or IN");
  EXPECT_EQ(Refusal("year = \"1990\""),
            "column 8: year holds numbers and \"1990\" is text; write 1990");
  EXPECT_EQ(Refusal("year = recent"), "column 8: year holds numbers; \"recent\" is none");
  EXPECT_EQ(Refusal("year:1990"),
            "column 1: year is an integer; : asks what a text or a list contains. Write =");
  EXPECT_EQ(Refusal("available = yes"), "column 13: available is true or false; found \"yes\"");
  EXPECT_EQ(Refusal("available > false"),
            "column 1: available is true or false; write available = true");
  EXPECT_EQ(Refusal("released > yesterday"),
            "column 12: released holds times; \"yesterday\" is none. Write \"2024-05-31\" or "
            "\"2024-05-31T12:00:00Z\"");
  EXPECT_EQ(Refusal("cast = Banionis"),
            "column 1: cast holds objects; compare a field of them: cast.lead");
  EXPECT_EQ(Refusal("year > +-5"), "column 8: year holds numbers; \"+-5\" is none");
  EXPECT_EQ(Refusal("\"box office\" = much"),
            "column 16: \"box office\" holds numbers; \"much\" is none");
  EXPECT_EQ(Refusal("id > 3"), "column 1: ids compare with =, != and IN; > is not for them");
  EXPECT_EQ(Refusal("folded(year) = 1990"),
            "column 1: folded() is for texts; year is an integer. Write year =");
  EXPECT_EQ(Refusal("folded(id) = x"),
            "column 1: folded() is for texts; id is an id, which compares exactly. Write id =");
  EXPECT_EQ(Refusal("folded(title):x"),
            "column 14: expected =, != or IN after folded(title), found :");
  EXPECT_EQ(Refusal("title:\"\""), "column 7: \"\" is contained in everything; write has(title)");
}

TEST(FiltersOfListsTest, AskForAnElement) {
  data::Dataset dataset;
  dataset.ids = data::IdIndex::OfRowNumbers(5);
  dataset.payload = MakeTable({
      {{"codes", List({Whole(3), Whole(5)})}, {"flags", List({Flag(true), Flag(false)})}},
      {{"codes", List({Whole(1), Whole(9)})}, {"flags", List({Flag(true)})}},
      {{"codes", Whole(3)}, {"flags", Flag(false)}},
      {{"codes", List({})}, {"flags", List({})}},
      {},
  });
  const auto filters = Filters::Create(dataset, "items");
  const auto rows = [&](const char* filter) {
    const auto mask = FindRows(*filters, filter);
    EXPECT_TRUE(mask.ok()) << filter << ": " << mask.status();
    std::vector<Row> passing;
    if (mask.ok()) (*mask)->ForEachAllowed(0, 5, [&](Row row) { passing.push_back(row); });
    return passing;
  };
  EXPECT_THAT(rows("codes = 3"), ElementsAre(0, 2));
  EXPECT_THAT(rows("codes:3"), ElementsAre(0, 2));
  EXPECT_THAT(rows("codes != 3"), ElementsAre(1, 3));
  EXPECT_THAT(rows("NOT codes:3"), ElementsAre(1, 3, 4));
  EXPECT_THAT(rows("codes IN [5, 9]"), ElementsAre(0, 1));
  EXPECT_THAT(rows("codes NOT IN [5, 9]"), ElementsAre(2, 3, 4));
  // One element is below, another above.
  EXPECT_THAT(rows("codes < 2 AND codes > 8"), ElementsAre(1));
  EXPECT_THAT(rows("codes > 3.5"), ElementsAre(0, 1));
  EXPECT_THAT(rows("has(codes)"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(rows("flags = false"), ElementsAre(0, 2));
  EXPECT_THAT(rows("flags != false"), ElementsAre(1, 3));
  EXPECT_THAT(rows("flags:true AND flags:false"), ElementsAre(0));
  EXPECT_EQ(FindRows(*filters, "flags > false").status().message(),
            "column 1: flags is a list of booleans, which has no order; > is for integers, numbers "
            "and times. Write =, !=, : or IN");
  EXPECT_EQ(FindRows(*filters, "folded(codes) = 3").status().message(),
            "column 1: folded() is for texts; codes is a list of integers. Write codes =");
}

TEST(FilterWorkTest, IsBoundedByTheRowCount) {
  constexpr std::size_t kRowCount = 10'000;
  std::vector<PayloadObject> rows;
  for (std::size_t r = 0; r < kRowCount; ++r)
    rows.push_back({{"year", Whole(static_cast<std::int64_t>(r))}});
  data::Dataset dataset;
  dataset.ids = data::IdIndex::OfRowNumbers(kRowCount);
  dataset.payload = MakeTable(rows);
  const auto filters = Filters::Create(dataset, "films");
  std::string filter = "year >= 0";
  for (int i = 1; i < 250; ++i) filter += " AND year >= 0";
  EXPECT_EQ(FindRows(*filters, filter).value()->AllowedCount(), kRowCount);
  for (int i = 250; i < 260; ++i) filter += " AND year >= 0";
  EXPECT_EQ(FindRows(*filters, filter).status().message(),
            "the filters of this call look about 265 times at every row of films, and at most "
            "256 times are allowed: send fewer different filters a call, or shorter ones; a filter "
            "used lately costs nothing");
  // Any number of conditions that few rows pass.
  std::string ids = "id IN [0";
  for (int i = 1; i < 1'000; ++i) ids += fmt::format(", {}", i);
  EXPECT_EQ(FindRows(*filters, ids + "]").value()->AllowedCount(), 1'000U);
}

TEST_F(FiltersTest, CompareOnlyIdsWithoutAPayload) {
  data::Dataset bare;
  bare.ids = data::IdIndex::OfRowNumbers(2);
  const auto filters = Filters::Create(bare, "sentences");
  EXPECT_EQ(FindRows(*filters, "id = \"1\"").value()->AllowedCount(), 1U);
  EXPECT_EQ(FindRows(*filters, "year > 1").status().message(),
            "column 1: sentences has no payload and so no field \"year\"; only id can be asked");
}

TEST_F(FiltersTest, CostNothingWhileTheyAreCached) {
  base::LongWork work = tests::UnaskedWork();
  EXPECT_GT(filters_->Prepare("year > 1990", filters_->payload(), work)->looks, 0U);
  ASSERT_TRUE(FindRows(*filters_, "year > 1990").ok());
  EXPECT_EQ(filters_->Prepare("year > 1990", filters_->payload(), work)->looks, 0U);
}

TEST_F(FiltersTest, ShareAMaskBetweenSpellingsOfAFilter) {
  const auto mask = FindRows(*filters_, "year>1990 and (title = Solaris)").value();
  EXPECT_EQ(FindRows(*filters_, "  year > 1990 AND title = Solaris").value(), mask);
  EXPECT_NE(FindRows(*filters_, "year > 1991 AND title = Solaris").value(), mask);
}

TEST_F(FiltersTest, CacheAnIntersectionByTheNamesOfBoth) {
  const NamedRows late{"year > 1990", FindRows(*filters_, "year > 1990").value()};
  const NamedRows solaris{"title = Solaris", FindRows(*filters_, "title = Solaris").value()};
  RowMask wanted = *late.rows;
  wanted.IntersectWith(*solaris.rows);
  const std::uint64_t bytes = filters_->bytes();
  const NamedRows both = filters_->Intersection(late, solaris);
  EXPECT_EQ(*both.rows, wanted);
  EXPECT_GT(filters_->bytes(), bytes);
  EXPECT_EQ(filters_->Intersection(late, solaris).rows, both.rows);
  EXPECT_EQ(filters_->Intersection(late, {}).rows, late.rows);
  EXPECT_EQ(filters_->Intersection({}, solaris).rows, solaris.rows);
  // With rows that no filter made, which have no name.
  const NamedRows unnamed{"", std::make_shared<const RowMask>(wanted.row_count())};
  EXPECT_EQ(filters_->Intersection(late, unnamed).rows->AllowedCount(), 0U);
  EXPECT_EQ(*filters_->Intersection(late, both).rows, wanted);
}

std::vector<std::string> CorpusFilters(const char* folder) {
  std::vector<std::string> filters;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(SIMILE_SOURCE_DIR "/tests/data/corpus/filter") / folder)) {
    std::ifstream file(entry.path());
    filters.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return filters;
}

TEST(CorpusTest, HasFiltersThatParseAndFiltersThatDoNot) {
  const std::vector<std::string> good = CorpusFilters("good");
  const std::vector<std::string> bad = CorpusFilters("bad");
  EXPECT_GE(good.size(), 10U);
  EXPECT_GE(bad.size(), 10U);
  for (const std::string& filter : good) EXPECT_TRUE(Parse(filter).ok()) << filter;
  for (const std::string& filter : bad) EXPECT_FALSE(Parse(filter).ok()) << filter;
}

TEST(MaskCacheTest, EvictsTheLeastRecentlyUsed) {
  const auto mask = std::make_shared<const RowMask>(64 * 1'000);  // 8,000 bytes
  MaskCache cache(20'000);
  cache.Insert("a", mask);
  cache.Insert("b", mask);
  EXPECT_NE(cache.Find("a"), nullptr);
  cache.Insert("c", mask);
  EXPECT_EQ(cache.Find("b"), nullptr);
  EXPECT_NE(cache.Find("a"), nullptr);
  EXPECT_NE(cache.Find("c"), nullptr);
  EXPECT_LE(cache.bytes(), 20'000U);
  EXPECT_GE(cache.bytes(), 16'000U);
  cache.Insert("large", std::make_shared<const RowMask>(64 * 10'000));
  EXPECT_EQ(cache.Find("large"), nullptr);
  EXPECT_NE(cache.Find("c"), nullptr) << "nothing had to go for what does not fit";
}

TEST(MaskCacheTest, KeepsOneOfTwoEqualMasks) {
  MaskCache cache(1 << 20);
  const auto first = std::make_shared<const RowMask>(100);
  const auto second = std::make_shared<const RowMask>(100);
  cache.Insert("a", first);
  const std::uint64_t bytes = cache.bytes();
  cache.Insert("a", second);
  EXPECT_EQ(cache.Find("a"), second);
  EXPECT_EQ(cache.bytes(), bytes);
}

}  // namespace
}  // namespace simile::filter
