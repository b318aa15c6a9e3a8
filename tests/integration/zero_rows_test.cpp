// Collections with rows of zeros. By cosine they are skipped, and every answer is that of a
// collection which does not have them; of dot products they are rows like any other.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "certificate/seeded_random.h"
#include "files/npy_file.h"
#include "files/scratch_folder.h"
#include "integration/films_client_test.h"

namespace simile::integration {
namespace {

using google::protobuf::TextFormat;
using google::protobuf::util::MessageDifferencer;
using ::testing::Each;
using ::testing::FloatEq;
using ::testing::HasSubstr;

// The same items three times: "skipping" by cosine with the rows of zeros skipped, "without" by
// cosine without these items, "dot" with all of them.
class ZeroRowFolders {
 public:
  static constexpr std::size_t kDim = 12;
  static constexpr std::size_t kItems = 2'000;  // enough for the certified engine to index them
  static constexpr std::size_t kZeroItems = 500;
  static bool HasZeros(std::size_t item) { return item % 4 == 1; }

  ZeroRowFolders() {
    tests::SeededRandom random(kSeed);
    vectors_ = RandomRows(kItems, random);
    for (std::size_t item = 0; item < kItems; ++item) {
      if (HasZeros(item)) std::fill_n(vectors_.begin() + Start(item), kDim, 0.0F);
      metadata_.push_back(fmt::format(R"({{"id": "item-{}", "tag": "tag-{}", "year": {}}})", item,
                                      random.Below(40), random.Between(1950, 2020)));
    }
    users_ = RandomRows(kUsers, random);
    for (std::size_t user = 0; user < kUsers; ++user) {
      for (int seen = 0; seen < 60; ++seen) {
        interactions_ += fmt::format("{{\"user_id\": \"user-{}\", \"id\": \"item-{}\"}}\n", user,
                                     random.Below(200));
      }
    }
    Write("skipping", true, R"({"metric": "cosine", "on_zero_row": "skip"})");
    Write("without", false, R"({"metric": "cosine"})");
    Write("dot", true, R"({"metric": "dot"})");
  }

  std::string FolderPath(const std::string& collection) const {
    return (folder_.path() / collection).string();
  }
  std::vector<float> CopyVector(std::size_t item) const {
    return {vectors_.begin() + Start(item), vectors_.begin() + Start(item + 1)};
  }

 private:
  static constexpr std::uint64_t kSeed = 8'000'000;
  static constexpr std::size_t kUsers = 4;

  static std::ptrdiff_t Start(std::size_t item) { return static_cast<std::ptrdiff_t>(item * kDim); }
  static std::vector<float> RandomRows(std::size_t count, tests::SeededRandom& random) {
    std::vector<float> rows(count * kDim);
    for (float& value : rows) value = random.Signed();
    return rows;
  }

  void Write(const std::string& collection, bool zeros, const std::string& settings) const {
    std::vector<float> vectors;
    std::string metadata;
    for (std::size_t item = 0; item < kItems; ++item) {
      if (!zeros && HasZeros(item)) continue;
      vectors.insert(vectors.end(), vectors_.begin() + Start(item),
                     vectors_.begin() + Start(item + 1));
      metadata += metadata_[item] + '\n';
    }
    const std::string at = collection + "/";
    folder_.Write(at + "collection.json", settings);
    folder_.Write(at + "vectors.npy", NpyFile(vectors, kDim));
    folder_.Write(at + "metadata.jsonl", metadata);
    folder_.Write(at + "user_ids.json", R"(["user-0", "user-1", "user-2", "user-3"])");
    folder_.Write(at + "preference_vectors.npy", NpyFile(users_, kDim));
    folder_.Write(at + "interactions.jsonl", interactions_);
  }

  const ScratchFolder folder_;
  std::vector<float> vectors_;  // [items, kDim]
  std::vector<std::string> metadata_;
  std::vector<float> users_;
  std::string interactions_;
};

class ZeroRowsTest : public FilmsClientTest {
 protected:
  static constexpr std::size_t kDim = ZeroRowFolders::kDim;
  static constexpr std::size_t kItems = ZeroRowFolders::kItems;
  // A query of as many numbers, without its closing brace.
  static constexpr char kVector[] =
      "queries { vector { values: [1, -0.5, 0.25, 3, 0, 1, 0.5, -2, 0.1, 0.2, 0.3, 0.4] } ";

  ZeroRowsTest() : FilmsClientTest(*server_) {}

  static void SetUpTestSuite() {
    folders_ = std::make_unique<ZeroRowFolders>();
    server_ = std::make_unique<FilmsServer>([](app::Config& config) {
      config.collections.clear();
      for (const char* const name : {"skipping", "without", "dot"}) {
        config.collections.push_back({name, folders_->FolderPath(name)});
      }
    });
  }
  static void TearDownTestSuite() {
    server_.reset();
    folders_.reset();
  }

  //   text  of a SearchRequest without its collection
  static v1::SearchRequest MakeRequest(const std::string& collection, const std::string& text) {
    v1::SearchRequest request;
    EXPECT_TRUE(TextFormat::ParseFromString(text, &request)) << text;
    request.set_collection(collection);
    return request;
  }
  Outcome Refused(const std::string& text) const {
    v1::SearchResponse response;
    return client_.Search(MakeRequest("skipping", text), response);
  }
  v1::Collection Described(const std::string& collection) const {
    v1::GetCollectionResponse response;
    EXPECT_TRUE(client_.Get(collection, response).ok());
    return response.collection();
  }

  inline static std::unique_ptr<ZeroRowFolders> folders_;
  inline static std::unique_ptr<FilmsServer> server_;
};

TEST_F(ZeroRowsTest, CountsTheSkippedRows) {
  EXPECT_EQ(Described("skipping").rows(), kItems);
  EXPECT_EQ(Described("skipping").skipped_rows(), ZeroRowFolders::kZeroItems);
  EXPECT_EQ(Described("without").skipped_rows(), 0U);
  EXPECT_EQ(Described("dot").rows(), kItems);
  EXPECT_EQ(Described("dot").skipped_rows(), 0U);
}

TEST_F(ZeroRowsTest, AnswersAsIfTheSkippedItemsWereNotThere) {
  const std::string vector = kVector;
  const std::string searches[] = {
      vector + "}",
      vector + "k: 2000 }",
      vector + "k: 10 offset: 1495 }",
      vector + "score_threshold: -0.9 k: 1800 }",
      vector + "filter: 'year < 1985' }",
      vector + "filter: 'year = 1977' k: 500 }",
      vector + "group_by { field: 'tag' group_size: 3 } }",
      vector + "diversity { lambda: 0.4 } }",
      vector + "} options { required_filter: 'year >= 1990' filter: 'tag = \"tag-3\"' }",
      vector + "} options { required_filter: 'year >= 1990' }",
      "queries { id: 'item-2' k: 60 exclude_ids: ['item-1', 'item-3', 'item-8'] }",
      "queries { user_id: 'user-1' exclude_seen: true }",
      "queries { blend { id: 'item-4' user_id: 'user-2' } }",
      "queries { examples { strategy: STRATEGY_AVERAGE_VECTOR positive { id: 'item-2' } "
      "negative { id: 'item-7' } } }",
      "queries { examples { strategy: STRATEGY_BEST_SCORE positive { id: 'item-2' } "
      "positive { id: 'item-6' } negative { id: 'item-7' } } }",
      "queries { examples { strategy: STRATEGY_BEST_SCORE negative { id: 'item-7' } } }",
      "queries { examples { strategy: STRATEGY_SUM_SCORES positive { id: 'item-2' } "
      "negative { id: 'item-7' } } k: 1600 }",
      "queries { user_id: 'nobody' k: 80 } options { cold_start { order: ORDER_NEWEST } }",
      "queries { user_id: 'nobody' k: 1900 } options { cold_start { order: ORDER_MOST_POPULAR } }",
      "queries { id: 'item-2' } queries { id: 'item-3' filter: 'year > 2000' }",
  };
  for (const std::string& text : searches) {
    v1::SearchResponse skipping = Search(MakeRequest("skipping", text));
    v1::SearchResponse without = Search(MakeRequest("without", text));
    // One has the excluded items, and the other says that it does not.
    for (v1::SearchResponse* const response : {&skipping, &without}) {
      for (v1::SearchResult& result : *response->mutable_results()) result.clear_notes();
    }
    ASSERT_EQ(skipping.results_size(), without.results_size()) << text;
    for (int query = 0; query < without.results_size(); ++query) {
      EXPECT_TRUE(MessageDifferencer::Equals(skipping.results(query), without.results(query)))
          << text << "\n"
          << skipping.results(query).ShortDebugString().substr(0, 500) << "\n"
          << without.results(query).ShortDebugString().substr(0, 500);
    }
  }
}

TEST_F(ZeroRowsTest, PagesAsIfTheSkippedItemsWereNotThere) {
  v1::SearchRequest skipping =
      MakeRequest("skipping", "queries { id: 'item-2' k: 400 } options { paged: true }");
  v1::SearchRequest without = skipping;
  without.set_collection("without");
  int pages = 0;
  for (bool more = true; more; ++pages) {
    ASSERT_LT(pages, 10);
    const v1::SearchResponse a = Search(skipping);
    const v1::SearchResponse b = Search(without);
    EXPECT_TRUE(MessageDifferencer::Equals(a.results(0), b.results(0))) << "page " << pages;
    skipping.mutable_options()->set_page_token(a.next_page_token());
    without.mutable_options()->set_page_token(b.next_page_token());
    more = !a.next_page_token().empty();
    EXPECT_EQ(more, !b.next_page_token().empty());
  }
  EXPECT_EQ(pages, 4);
}

TEST_F(ZeroRowsTest, RecommendsNoSkippedItem) {
  v1::RecommendRequest request;
  request.add_user_ids("user-3");
  request.mutable_options()->set_k(2'000);
  request.mutable_options()->set_exclude_seen(true);
  request.set_collection("skipping");
  v1::RecommendResponse skipping = Recommend(request);
  request.set_collection("without");
  v1::RecommendResponse without = Recommend(request);
  // What the user has seen counts skipped items, too.
  EXPECT_GT(skipping.results(0).seen_count(), without.results(0).seen_count());
  for (v1::RecommendResponse* const response : {&skipping, &without}) {
    response->mutable_results(0)->clear_seen_count();
  }
  EXPECT_TRUE(MessageDifferencer::Equals(skipping.results(0), without.results(0)));
}

TEST_F(ZeroRowsTest, RefusesASkippedItemAsATarget) {
  constexpr char kMessage[] =
      "item \"item-5\" of skipping has a vector of zeros, which is like nothing (on_zero_row: "
      "skip)";
  const std::pair<const char*, const char*> cases[] = {
      {"queries { id: 'item-5' }", "queries[0].id"},
      {"queries { blend { id: 'item-5' user_id: 'user-2' } }", "queries[0].blend.id"},
      {"queries { examples { strategy: STRATEGY_SUM_SCORES positive { id: 'item-5' } } }",
       "queries[0].examples.positive[0].id"},
  };
  for (const auto& [text, field] : cases) {
    const Outcome outcome = Refused(text);
    EXPECT_EQ(outcome.code, absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(outcome.message, HasSubstr(kMessage));
    EXPECT_EQ(outcome.field, field);
  }
  // A query by the vector that a Fetch returns has no direction either.
  std::string zeros = "0";
  for (std::size_t i = 1; i < kDim; ++i) zeros += ", 0";
  const Outcome outcome = Refused(fmt::format("queries {{ vector {{ values: [{}] }} }}", zeros));
  EXPECT_EQ(outcome.code, absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(outcome.field, "queries[0].vector");
}

TEST_F(ZeroRowsTest, FetchesSkippedItems) {
  v1::FetchRequest request;
  request.set_collection("skipping");
  request.add_ids("item-5");
  request.set_with_vectors(true);
  v1::FetchResponse response;
  ASSERT_TRUE(client_.Fetch(request, response).ok());
  ASSERT_EQ(response.items_size(), 1);
  EXPECT_EQ(response.items(0).payload().at("id").string_value(), "item-5");
  ASSERT_EQ(response.items(0).vector().values_size(), static_cast<int>(kDim));
  EXPECT_THAT(response.items(0).vector().values(), Each(FloatEq(0)));
}

TEST_F(ZeroRowsTest, ScoresRowsOfZerosOfDotProductsAsZero) {
  const v1::SearchRequest request =
      MakeRequest("dot", std::string(kVector) + "k: 2000 } options { with_rows: true }");
  const v1::SearchResponse response = Search(request);
  ASSERT_EQ(response.results(0).hits_size(), static_cast<int>(kItems));
  const auto& query = request.queries(0).vector().values();
  std::size_t zeros = 0;
  std::uint64_t last_row = 0;
  float last_score = HUGE_VALF;
  for (const v1::Hit& hit : response.results(0).hits()) {
    double score = 0;
    const std::vector<float> row = folders_->CopyVector(hit.row());
    for (std::size_t i = 0; i < kDim; ++i) {
      score += static_cast<double>(row[i]) * static_cast<double>(query[static_cast<int>(i)]);
    }
    EXPECT_NEAR(hit.score(), score, 1e-5) << hit.id();
    ASSERT_TRUE(hit.score() < last_score || (hit.score() == last_score && hit.row() > last_row));
    last_score = hit.score();
    last_row = hit.row();
    if (!ZeroRowFolders::HasZeros(hit.row())) continue;
    ++zeros;
    EXPECT_EQ(hit.score(), 0);
    EXPECT_FALSE(std::signbit(hit.score()));
  }
  EXPECT_EQ(zeros, ZeroRowFolders::kZeroItems);
}

TEST_F(ZeroRowsTest, TakesARowOfZerosOfDotProductsAsATarget) {
  std::string zeros = "0";
  for (std::size_t i = 1; i < kDim; ++i) zeros += ", 0";
  const v1::SearchResponse response = Search(MakeRequest(
      "dot",
      fmt::format("queries {{ id: 'item-1' }} queries {{ vector {{ values: [{}] }} }}", zeros)));
  ASSERT_EQ(response.results_size(), 2);
  for (int query = 0; query < 2; ++query) {
    std::vector<std::string> ids;
    for (const v1::Hit& hit : response.results(query).hits()) {
      ids.push_back(hit.id());
      EXPECT_EQ(hit.score(), 0);
    }
    std::vector<std::string> first_rows;
    for (int row = 0; first_rows.size() < 10; ++row) {
      if (query == 1 || row != 1) first_rows.push_back(fmt::format("item-{}", row));
    }
    EXPECT_EQ(ids, first_rows);
  }
}

}  // namespace
}  // namespace simile::integration
