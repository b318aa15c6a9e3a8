#include "data/payload/id_index.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/unasked_work.h"
#include "data/sample_ids.h"

namespace simile::data {
namespace {

std::string NearestIn(const IdIndex& index, std::string_view id) {
  base::LongWork work = tests::UnaskedWork();
  return index.Nearest(id, work).value();
}

IdIndex MakeIndex(const std::vector<std::string>& ids) {
  IdIndex::Builder builder(ids.size());
  for (const std::string& id : ids) EXPECT_TRUE(builder.Add(id).ok());
  return std::move(builder).Build();
}

TEST(IdIndexTest, KnowsWhetherAllIdsAreIntegers) {
  const std::vector<std::string> integers = {"7", "0", "-12", "9223372036854775807",
                                             "-9223372036854775808"};
  const IdIndex index = MakeIndex(integers);
  ASSERT_TRUE(index.are_integers());
  EXPECT_EQ(index.Integer(2), -12);
  EXPECT_EQ(index.Integer(3), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(index.Integer(4), std::numeric_limits<std::int64_t>::min());
  for (const std::string other :
       {"007", "-0", "+7", "", "-", "1.0", " 1", "9223372036854775808", "x"}) {
    EXPECT_FALSE(MakeIndex({"7", other, "8"}).are_integers()) << other;
  }
  EXPECT_FALSE(MakeIndex({}).are_integers());
  EXPECT_TRUE(IdIndex::OfRowNumbers(3).are_integers());
  EXPECT_EQ(IdIndex::OfRowNumbers(3).Integer(2), 2);
  EXPECT_FALSE(IdIndex::OfRowNumbers(0).are_integers());
}

// With the number of ids known, unknown, and wrong.
class IdIndexManyTest : public testing::TestWithParam<std::size_t> {};

TEST_P(IdIndexManyTest, FindsEveryOneOfManyIds) {
  constexpr Row kCount = 100'000;
  const auto id_of = [](Row row) { return fmt::format("item-{}", row * 7919); };
  IdIndex::Builder builder(GetParam());
  for (Row row = 0; row < kCount; ++row) ASSERT_TRUE(builder.Add(id_of(row)).ok());
  const IdIndex index = std::move(builder).Build();
  ASSERT_EQ(index.size(), kCount);
  for (Row row = 0; row < kCount; ++row) {
    ASSERT_EQ(index.Id(row), id_of(row));
    IdIndex::Digits digits;
    ASSERT_EQ(index.Id(row, digits), id_of(row));
    ASSERT_EQ(index.Find(id_of(row)), row);
  }
  EXPECT_EQ(index.Find("item-1"), std::nullopt);
  EXPECT_EQ(index.Find(""), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Expected, IdIndexManyTest, testing::Values(0, 1, 99'999, 100'000));

TEST(IdIndexTest, TakesAsManyBytesAsItsHeaderStates) {
  IdIndex::Builder builder(10'000);
  std::size_t id_bytes = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = fmt::format("a-rather-typical-id-{}", i);
    id_bytes += id.size();
    ASSERT_TRUE(builder.Add(id).ok());
  }
  const IdIndex index = std::move(builder).Build();
  EXPECT_NEAR(static_cast<double>(index.bytes()),
              static_cast<double>(id_bytes + std::size_t{14} * 10'000), 100);
}

TEST(IdIndexTest, RefusesAnIdTwiceAndNamesItsRow) {
  IdIndex::Builder builder(3);
  ASSERT_TRUE(builder.Add("a").ok());
  ASSERT_TRUE(builder.Add("b").ok());
  const absl::Status status = builder.Add("b");
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(std::string(status.message()), "id \"b\" is also that of row 1");
  EXPECT_TRUE(builder.Add("c").ok());
  EXPECT_EQ(std::move(builder).Build().Find("c"), Row{2});
}

TEST(IdIndexTest, ReadsRowNumbersAsIds) {
  const IdIndex index = IdIndex::OfRowNumbers(12);
  EXPECT_EQ(index.size(), 12U);
  EXPECT_EQ(index.Id(11), "11");
  IdIndex::Digits digits;
  EXPECT_EQ(index.Id(11, digits), "11");
  constexpr Row kGreatest = std::numeric_limits<Row>::max();
  EXPECT_EQ(IdIndex::OfRowNumbers(std::size_t{kGreatest} + 1).Id(kGreatest, digits), "4294967295");
  EXPECT_EQ(index.Find("0"), Row{0});
  EXPECT_EQ(index.Find("11"), Row{11});
  for (const char* const id :
       {"12", "-1", "+1", "01", " 1", "1 ", "", "x", "99999999999999999999"}) {
    EXPECT_EQ(index.Find(id), std::nullopt) << id;
  }
  EXPECT_EQ(index.bytes(), 0U);
  EXPECT_EQ(NearestIn(index, "13"), "");
}

TEST(IdIndexTest, FindsNothingWhenEmpty) {
  EXPECT_EQ(IdIndex().Find("a"), std::nullopt);
  EXPECT_EQ(NearestIn(IdIndex(), "a"), "");
  EXPECT_EQ(IdIndex().size(), 0U);
}

TEST(IdIndexTest, OffersTheNearestId) {
  const IdIndex index =
      MakeIndex({"toy-story-1995", "toy-story-2-1999", "user_00042", "heat-1995"});
  EXPECT_EQ(NearestIn(index, "toy-stroy-1995"), "toy-story-1995");
  EXPECT_EQ(NearestIn(index, "user_42"), "user_00042");
  EXPECT_EQ(NearestIn(index, "HEAT-1995"), "heat-1995");
  EXPECT_EQ(NearestIn(index, "something else"), "");
}

TEST(IdIndexTest, OffersTheLowestRowOnATie) {
  EXPECT_EQ(NearestIn(MakeIndex({"abcdef1", "abcdef2"}), "abcdef3"), "abcdef1");
}

TEST(IdIndexTest, OffersAContinuationOfTheId) {
  const IdIndex index = MakeIndex({"toy-story-2-1999", "toy-story-1995", "user_00042"});
  EXPECT_EQ(NearestIn(index, "toy-story"), "toy-story-1995");
  EXPECT_EQ(NearestIn(index, "to"), "");
}

// `id_count` ids: id-0, id-1, ...
IdIndex Numbered(int id_count) {
  IdIndex::Builder builder(static_cast<std::size_t>(id_count));
  for (int i = 0; i < id_count; ++i) EXPECT_TRUE(builder.Add(fmt::format("id-{}", i)).ok());
  return std::move(builder).Build();
}

TEST(IdIndexTest, OffersOnlyContinuationsWhenTheListIsLong) {
  EXPECT_EQ(NearestIn(Numbered(200'000), "id_199998"), "id-199998");
  const IdIndex index = Numbered(200'001);
  EXPECT_EQ(NearestIn(index, "id_199998"), "");
  EXPECT_EQ(NearestIn(index, "id-19999"), "id-199990");
}

TEST(IdIndexTest, OffersNothingWhenTheListIsTooLongToSearch) {
  EXPECT_EQ(NearestIn(Numbered(2'000'000), "id-199999"), "id-1999990");
  EXPECT_EQ(NearestIn(Numbered(2'000'001), "id-199999x"), "");
  EXPECT_EQ(NearestIn(Numbered(2'000'001), "id-"), "");
}

TEST(IdIndexNearestTest, EndsWhenTheCallIsOver) {
  base::LongWork work([] { return absl::CancelledError("gone"); });
  EXPECT_EQ(Numbered(200'000).Nearest("id_199998", work).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace simile::data
