#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/films_client_test.h"

namespace simile::integration {
namespace {

using ::testing::ElementsAre;

class SearchOptionsTest : public FilmsClientTest {
 protected:
  SearchOptionsTest() : FilmsClientTest(*server_) {}

  static void SetUpTestSuite() { server_ = std::make_unique<FilmsServer>(); }
  static void TearDownTestSuite() { server_.reset(); }

  static v1::SearchRequest ToyStory(std::uint32_t k) {
    v1::SearchRequest request;
    request.set_collection("films");
    request.add_queries()->set_id("toy-story-1995");
    request.mutable_options()->set_k(k);
    return request;
  }

  // The stored vector of an item.
  std::vector<float> FetchVector(const std::string& id) {
    v1::FetchRequest request;
    request.set_collection("films");
    request.add_ids(id);
    request.set_with_vectors(true);
    v1::FetchResponse response;
    EXPECT_TRUE(client_.Fetch(request, response).ok());
    const auto& values = response.items(0).vector().values();
    return {values.begin(), values.end()};
  }

  inline static std::unique_ptr<FilmsServer> server_;
};

std::vector<std::string> Ids(const v1::SearchResult& result) {
  std::vector<std::string> ids;
  for (const v1::Hit& hit : result.hits()) ids.push_back(hit.id());
  return ids;
}

std::vector<std::string> FieldNames(const v1::Hit& hit) {
  std::vector<std::string> names;
  for (const auto& [name, value] : hit.payload()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

TEST_F(SearchOptionsTest, AnswersWithTheNearestFilms) {
  const v1::SearchResponse response = Search(ToyStory(3));
  EXPECT_THAT(Ids(response.results(0)),
              ElementsAre("toy-story-2-1999", "toy-story-4-2019", "toy-story-3-2010"));
  const v1::Hit& first = response.results(0).hits(0);
  EXPECT_EQ(first.rank(), 1U);
  EXPECT_NEAR(first.score(), 0.7029, 5e-5);
  EXPECT_EQ(first.payload().at("title").string_value(), "Toy Story 2");
  EXPECT_EQ(first.payload().at("year").int_value(), 1999);
  EXPECT_EQ(first.payload().at("genres").list_value().values(0).string_value(), "Animated");
  EXPECT_FALSE(first.has_vector());
  EXPECT_FALSE(first.has_row());
}

// The first vectors of the films' file as they lie there: fp16.
std::vector<std::string> ReadPackedRows(const std::string& npy, std::size_t count) {
  std::ifstream file(npy, std::ios::binary);
  std::string head(10, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  file.ignore(static_cast<unsigned char>(head[8]) + 256 * static_cast<unsigned char>(head[9]));
  std::vector<std::string> rows(count, std::string(kFilmsDim * sizeof(std::uint16_t), '\0'));
  for (std::string& row : rows) file.read(row.data(), static_cast<std::streamsize>(row.size()));
  EXPECT_TRUE(file.good());
  return rows;
}

TEST_F(SearchOptionsTest, AVectorOfTheFilesGetsTheBitsOfItsRow) {
  constexpr std::uint32_t kRows = 50;
  v1::SearchRequest raw;
  raw.set_collection("films");
  for (std::string& row :
       ReadPackedRows(std::string(kFilmsFolder) + "/content_vectors.npy", kRows)) {
    v1::PackedVector& vector = *raw.add_queries()->mutable_packed_vector();
    vector.set_format(v1::PackedVector::FORMAT_F16_LE);
    vector.set_data(std::move(row));
  }
  raw.mutable_options()->set_with_vectors(true);
  raw.mutable_options()->set_with_rows(true);
  raw.mutable_options()->mutable_payload()->set_selection(v1::PayloadSelector::SELECTION_NONE);
  const v1::SearchResponse answer = Search(raw);
  v1::SearchRequest stored;
  stored.set_collection("films");
  *stored.mutable_options() = raw.options();
  for (std::uint32_t row = 0; row < kRows; ++row) {
    const v1::Hit& first = answer.results(static_cast<int>(row)).hits(0);
    ASSERT_EQ(first.row(), row) << "no two of these films are equal";
    *stored.add_queries()->mutable_vector() = first.vector();
  }
  const v1::SearchResponse expected = Search(stored);
  for (int row = 0; row < static_cast<int>(kRows); ++row) {
    EXPECT_EQ(answer.results(row).SerializeAsString(), expected.results(row).SerializeAsString());
  }
}

TEST_F(SearchOptionsTest, FillsTheReceipt) {
  const v1::Receipt receipt = Search(ToyStory(3), {{}, {{"x-request-id", "a test"}}}).receipt();
  EXPECT_EQ(receipt.backend(), v1::BACKEND_KIND_CPU);
  EXPECT_THAT(receipt.engines(), ElementsAre(testing::StartsWith("int8-")));
  EXPECT_FALSE(receipt.device().empty());
  EXPECT_FALSE(receipt.reason().empty());
  EXPECT_THAT(receipt.snapshot_id(), testing::MatchesRegex("[0-9a-f]{32}"));
  EXPECT_EQ(receipt.snapshot_version(), 1U);
  EXPECT_GE(receipt.batch_size(), 1U);
  EXPECT_GE(receipt.total_us(), receipt.queue_us());
  EXPECT_EQ(receipt.rows_scanned(), static_cast<std::uint64_t>(kFilmsRows));
  EXPECT_TRUE(receipt.exact());
  EXPECT_EQ(receipt.request_id(), "a test");
}

TEST_F(SearchOptionsTest, ReturnsTheRequestIdOrMakesOne) {
  v1::SearchResponse response;
  Outcome outcome = client_.Search(ToyStory(1), response, {{}, {{"x-request-id", "abc"}}});
  EXPECT_EQ(outcome.trailers.at("x-request-id"), "abc");
  outcome = client_.Search(ToyStory(1), response);
  EXPECT_EQ(outcome.trailers.at("x-request-id"), response.receipt().request_id());
  EXPECT_EQ(response.receipt().request_id().size(), 16U);
}

TEST_F(SearchOptionsTest, OffsetSkipsTheBestAndRanksTheRest) {
  v1::SearchRequest request = ToyStory(10);
  const std::vector<std::string> all = Ids(Search(request).results(0));
  request.mutable_options()->set_k(3);
  request.mutable_options()->set_offset(7);
  const v1::SearchResponse response = Search(request);
  EXPECT_THAT(Ids(response.results(0)), ElementsAre(all[7], all[8], all[9]));
  EXPECT_EQ(response.results(0).hits(0).rank(), 8U);
}

TEST_F(SearchOptionsTest, OffsetReachesTheLastRow) {
  v1::SearchRequest request = ToyStory(10);
  request.mutable_options()->set_offset(kFilmsRows - 3);
  request.mutable_options()->mutable_payload()->set_selection(v1::PayloadSelector::SELECTION_NONE);
  const v1::SearchResponse response = Search(request);
  ASSERT_EQ(response.results(0).hits_size(), 2);  // its own row is never returned
  EXPECT_EQ(response.results(0).hits(1).rank(), static_cast<std::uint32_t>(kFilmsRows - 1));
}

TEST_F(SearchOptionsTest, ThresholdLeavesOutLowerScores) {
  v1::SearchRequest request = ToyStory(100);
  request.mutable_options()->set_score_threshold(0.67F);
  const v1::SearchResponse response = Search(request);
  ASSERT_EQ(response.results(0).hits_size(), 3);
  EXPECT_GE(response.results(0).hits(2).score(), 0.67F);
}

TEST_F(SearchOptionsTest, LeavesOutTheExcludedIdsOfQueryAndOptions) {
  v1::SearchRequest request = ToyStory(1);
  request.mutable_options()->add_exclude_ids("toy-story-2-1999");
  request.mutable_options()->add_exclude_ids("an id no film has");
  request.mutable_queries(0)->add_exclude_ids("toy-story-4-2019");
  EXPECT_THAT(Ids(Search(request).results(0)), ElementsAre("toy-story-3-2010"));
}

TEST_F(SearchOptionsTest, ReturnsTheSelectedPayload) {
  v1::SearchRequest request = ToyStory(1);
  EXPECT_THAT(FieldNames(Search(request).results(0).hits(0)),
              ElementsAre("cast", "genres", "media_id", "title", "year"));
  v1::PayloadSelector& payload = *request.mutable_options()->mutable_payload();
  payload.add_fields("year");
  payload.add_fields("title");
  EXPECT_THAT(FieldNames(Search(request).results(0).hits(0)), ElementsAre("title", "year"));
  payload.clear_fields();
  payload.set_selection(v1::PayloadSelector::SELECTION_NONE);
  EXPECT_THAT(FieldNames(Search(request).results(0).hits(0)), ElementsAre());
}

TEST_F(SearchOptionsTest, ReturnsVectorsOfUnitLengthWithVectors) {
  v1::SearchRequest request = ToyStory(1);
  request.mutable_options()->set_with_vectors(true);
  const v1::SearchResponse response = Search(request);
  double squares = 0;
  for (const float value : response.results(0).hits(0).vector().values()) {
    squares += double{value} * value;
  }
  EXPECT_EQ(response.results(0).hits(0).vector().values_size(), kFilmsDim);
  EXPECT_NEAR(squares, 1, 1e-6);
}

TEST_F(SearchOptionsTest, PackedVectorsAnswerAsFloatsDo) {
  const std::vector<float> vector = FetchVector("toy-story-1995");
  v1::SearchRequest request = ToyStory(20);
  request.mutable_options()->set_with_rows(true);
  request.mutable_queries(0)->mutable_vector()->mutable_values()->Add(vector.begin(), vector.end());
  const v1::SearchResult floats = Search(request).results(0);
  EXPECT_EQ(floats.hits(0).id(), "toy-story-1995");

  v1::PackedVector& packed = *request.mutable_queries(0)->mutable_packed_vector();
  packed.set_format(v1::PackedVector::FORMAT_F32_LE);
  packed.mutable_data()->assign(reinterpret_cast<const char*>(vector.data()),
                                vector.size() * sizeof(float));
  const v1::SearchResult packed_floats = Search(request).results(0);
  ASSERT_EQ(packed_floats.hits_size(), floats.hits_size());
  for (int hit = 0; hit < floats.hits_size(); ++hit) {
    EXPECT_EQ(packed_floats.hits(hit).row(), floats.hits(hit).row());
    EXPECT_EQ(packed_floats.hits(hit).score(), floats.hits(hit).score());
  }
}

TEST_F(SearchOptionsTest, Fp16VectorsAnswerAsFloatsDoWithinRounding) {
  const std::vector<float> vector = FetchVector("toy-story-1995");
  v1::SearchRequest request = ToyStory(3);
  v1::PackedVector& packed = *request.mutable_queries(0)->mutable_packed_vector();
  packed.set_format(v1::PackedVector::FORMAT_F16_LE);
  for (const float value : vector) {
    // The nearest binary16, but 0 for magnitudes below 2^-14, which changes no score here by more
    // than the tolerance.
    int exponent = 0;
    const float fraction = std::frexp(std::abs(value), &exponent);  // [0.5, 1)
    std::uint32_t bits = 0;
    if (value != 0 && exponent > -14) {
      const auto steps =
          static_cast<std::uint32_t>(std::lround(std::ldexp(fraction, 11)));  // to 2^11
      bits = (static_cast<std::uint32_t>(exponent + 14) << 10) + (steps - 1024);
    }
    if (value < 0) bits |= 0x8000U;
    packed.mutable_data()->push_back(static_cast<char>(bits & 0xFF));
    packed.mutable_data()->push_back(static_cast<char>(bits >> 8));
  }
  const v1::SearchResult result = Search(request).results(0);
  EXPECT_THAT(Ids(result), ElementsAre("toy-story-1995", "toy-story-2-1999", "toy-story-4-2019"));
  EXPECT_NEAR(result.hits(0).score(), 1, 1e-3);
}

TEST_F(SearchOptionsTest, VectorsNeedNotBeOfUnitLength) {
  std::vector<float> vector = FetchVector("toy-story-1995");
  for (float& value : vector) value *= 1'000;
  v1::SearchRequest request = ToyStory(1);
  request.mutable_queries(0)->mutable_vector()->mutable_values()->Add(vector.begin(), vector.end());
  EXPECT_NEAR(Search(request).results(0).hits(0).score(), 1, 1e-6);
}

// Queries by a vector that the server returned are queries by its item, to the bit.
TEST_F(SearchOptionsTest, AVectorSentBackAsStoredAnswersAsItsItemDoes) {
  v1::SearchRequest request = ToyStory(50);
  request.mutable_options()->set_with_vectors(true);
  const v1::SearchResponse films = Search(request);
  request.clear_queries();
  request.mutable_options()->set_with_vectors(false);
  v1::SearchRequest by_vector = request;
  v1::SearchRequest by_bytes = request;
  for (const v1::Hit& film : films.results(0).hits()) {
    EXPECT_TRUE(film.vector().as_stored());
    request.add_queries()->set_id(film.id());
    *by_vector.add_queries()->mutable_vector() = film.vector();
    by_vector.mutable_queries()->rbegin()->add_exclude_ids(film.id());
    v1::PackedVector& packed = *by_bytes.add_queries()->mutable_packed_vector();
    packed.set_format(v1::PackedVector::FORMAT_F32_LE);
    packed.set_as_stored(true);
    packed.set_data(film.vector().values().data(), kFilmsDim * sizeof(float));
    by_bytes.mutable_queries()->rbegin()->add_exclude_ids(film.id());
  }
  const v1::SearchResponse items = Search(request);
  for (const v1::SearchResponse& vectors : {Search(by_vector), Search(by_bytes)}) {
    ASSERT_EQ(vectors.results_size(), items.results_size());
    for (int query = 0; query < items.results_size(); ++query) {
      EXPECT_EQ(Ids(vectors.results(query)), Ids(items.results(query)));
      for (int hit = 0; hit < items.results(query).hits_size(); ++hit) {
        EXPECT_EQ(vectors.results(query).hits(hit).score(), items.results(query).hits(hit).score());
      }
    }
  }
}

TEST_F(SearchOptionsTest, RefusesAVectorAsStoredOfAnotherLength) {
  v1::SearchRequest request = ToyStory(1);
  v1::FloatVector& vector = *request.mutable_queries(0)->mutable_vector();
  for (const float value : FetchVector("toy-story-1995")) vector.add_values(value * 1.00002F);
  EXPECT_EQ(Ids(Search(request).results(0)), std::vector<std::string>{"toy-story-1995"});
  vector.set_as_stored(true);
  v1::SearchResponse response;
  const Outcome outcome = client_.Search(request, response);
  EXPECT_EQ(outcome.reason, "INVALID_FIELD");
  EXPECT_EQ(outcome.field, "queries[0].vector");
  EXPECT_THAT(outcome.message, testing::HasSubstr("length 1.00002 and is marked as_stored"));
}

TEST_F(SearchOptionsTest, AnswersTheLargestBatch) {
  v1::SearchRequest request;
  request.set_collection("films");
  request.mutable_options()->set_k(3);
  request.mutable_options()->mutable_payload()->set_selection(v1::PayloadSelector::SELECTION_NONE);
  for (int index = 0; index < 1'024; ++index) request.add_queries()->set_id("toy-story-1995");
  const v1::SearchResponse response = Search(request, {std::chrono::seconds(60), {}});
  ASSERT_EQ(response.results_size(), 1'024);
  EXPECT_EQ(Ids(response.results(0)), Ids(response.results(1'023)));
  // How it is cut depends on how long its passes take.
  EXPECT_GT(response.receipt().batch_size(), 1U);
  EXPECT_LE(response.receipt().batch_size(), 1'024U);
}

}  // namespace
}  // namespace simile::integration
