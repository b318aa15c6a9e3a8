#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "integration/films_server.h"

namespace simile::integration {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ErrorsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<FilmsServer>(); }
  static void TearDownTestSuite() { server_.reset(); }

  Outcome Search(const std::string& text) {
    v1::SearchRequest request;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
    v1::SearchResponse response;
    return client_.Search(request, response);
  }

  Outcome Recommend(const std::string& text) {
    v1::RecommendRequest request;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
    v1::RecommendResponse response;
    return client_.Recommend(request, response);
  }

  static void Expect(const Outcome& outcome, absl::StatusCode code, const std::string& message) {
    EXPECT_EQ(outcome.code, code) << testing::PrintToString(outcome);
    EXPECT_EQ(outcome.message, message);
    EXPECT_TRUE(outcome.trailers.contains("x-request-id"));
    EXPECT_FALSE(outcome.trailers.contains("retry-after-ms"));
  }

  inline static std::unique_ptr<FilmsServer> server_;
  const Client client_ = server_->NewClient();
};

TEST_F(ErrorsTest, NamesAnUnknownCollection) {
  Expect(Search("collection: 'film' queries { id: 'x' }"), absl::StatusCode::kNotFound,
         "no collection \"film\". Did you mean \"films\"?");
}

TEST_F(ErrorsTest, NamesAnUnknownItemAndItsQuery) {
  Expect(Search("collection: 'films' queries { id: 'toy-story-1995' } "
                "queries { id: 'toy-story-1996' }"),
         absl::StatusCode::kNotFound,
         "queries[1]: no item \"toy-story-1996\" in films. Did you mean \"toy-story-1995\"?");
}

TEST_F(ErrorsTest, OffersTheItemWhoseIdBeginsAlike) {
  Expect(Search("collection: 'films' queries { id: 'toy-story' }"), absl::StatusCode::kNotFound,
         "no item \"toy-story\" in films. Did you mean \"toy-story-1995\"?");
}

TEST_F(ErrorsTest, NamesAnUnknownUserAndItsIndex) {
  Expect(Recommend("collection: 'films' user_ids: ['user_00042', 'user_42']"),
         absl::StatusCode::kNotFound,
         "user_ids[1]: no user \"user_42\" in films. Did you mean \"user_00042\"?");
}

TEST_F(ErrorsTest, SaysHowManyDimensionsAVectorHasAndShouldHave) {
  Expect(Search("collection: 'films' queries { vector { values: [1, 2, 3] } }"),
         absl::StatusCode::kInvalidArgument,
         "vector holds 3 dimensions, films has 384; a vector from another model cannot be "
         "compared");
}

TEST_F(ErrorsTest, SaysWhereAVectorIsNotFinite) {
  std::string text = "collection: 'films' queries { vector { values: [nan";
  for (int column = 1; column < kFilmsDim; ++column) text += ", 1";
  Expect(Search(text + "] } }"), absl::StatusCode::kInvalidArgument,
         "vector holds NaN at column 0; vectors must be finite");
}

TEST_F(ErrorsTest, NamesAnUnknownField) {
  Expect(Search("collection: 'films' queries { id: 'toy-story-1995' } "
                "options { payload { fields: ['title', 'genre'] } }"),
         absl::StatusCode::kInvalidArgument,
         "options.payload.fields[1]: films has no field \"genre\". Did you mean \"genres\"? "
         "Fields: cast, genres, media_id, title, year.");
}

TEST_F(ErrorsTest, NamesTheQueryThatIsOutOfRange) {
  Expect(Search("collection: 'films' queries { id: 'toy-story-1995' } queries { id: 'x' k: 0 }"),
         absl::StatusCode::kInvalidArgument, "queries[1].k: 0; ask for 1 to 10,000");
}

TEST_F(ErrorsTest, RefusesAReplyAboveItsMaximumUntilThatIsRaised) {
  const std::string all =
      "collection: 'films' queries { id: 'toy-story-1995' } "
      "options { k: 5000 with_vectors: true ";
  const Outcome refused = Search(all + "}");
  EXPECT_EQ(refused.code, absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message, StartsWith("the answer needs "));
  EXPECT_THAT(refused.message, HasSubstr(" bytes and may have 4,194,304; lower k, "));
  EXPECT_THAT(refused.message, HasSubstr("raise options.reply_bytes_max (up to 67,108,864)"));
  EXPECT_TRUE(Search(all + "reply_bytes_max: 67108864 }").ok());
}

TEST_F(ErrorsTest, CutsMessagesThatDoNotFitTheTrailers) {
  v1::SearchRequest request;
  request.set_collection("films");
  request.add_queries()->set_id("x");
  request.mutable_options()->mutable_payload()->add_fields(std::string(100'000, 'x'));
  v1::SearchResponse response;
  const Outcome outcome = client_.Search(request, response);
  EXPECT_EQ(outcome.code, absl::StatusCode::kInvalidArgument);
  EXPECT_LE(outcome.message.size(), 2'000U);
  EXPECT_THAT(outcome.message, StartsWith("options.payload.fields[0]: films has no field \"xxx"));
}

TEST_F(ErrorsTest, RefusesBytesThatDoNotParse) {
  // A truncated message, and a collection name that is not UTF-8: field 1, two bytes.
  for (const std::string bytes : {"\xff\xff\xff", "\x0a\x02\xc3\x28"}) {
    Expect(client_.SearchRaw(bytes), absl::StatusCode::kInvalidArgument,
           "could not be parsed as simile.v1.SearchRequest");
  }
  EXPECT_TRUE(Search("collection: 'films' queries { id: 'toy-story-1995' }").ok());
}

TEST_F(ErrorsTest, RefusesMessagesBeyondTwentyMebibytes) {
  v1::SearchRequest request;
  request.set_collection("films");
  request.add_queries()->set_id(std::string(21U << 20, 'x'));
  v1::SearchResponse response;
  const Outcome outcome = client_.Search(request, response);
  EXPECT_EQ(outcome.code, absl::StatusCode::kResourceExhausted) << testing::PrintToString(outcome);
}

TEST_F(ErrorsTest, RefusesMetadataBeyondEightKibibytes) {
  v1::SearchRequest request;
  request.set_collection("films");
  request.add_queries()->set_id("toy-story-1995");
  v1::SearchResponse response;
  const Outcome outcome =
      client_.Search(request, response, {{}, {{"x-note", std::string(10'000, 'x')}}});
  EXPECT_EQ(outcome.code, absl::StatusCode::kResourceExhausted) << testing::PrintToString(outcome);
}

TEST_F(ErrorsTest, SaysThatItReplacesAnUnusableRequestId) {
  const auto trailers = [&](const std::string& collection, const std::string& sent) {
    v1::SearchRequest request;
    request.set_collection(collection);
    request.add_queries()->set_id("toy-story-1995");
    v1::SearchResponse response;
    return client_.Search(request, response, {{}, {{"x-request-id", sent}}}).trailers;
  };
  for (const std::string collection : {"films", "nowhere"}) {
    const auto replaced = trailers(collection, std::string(129, 'x'));
    EXPECT_EQ(replaced.at("x-request-id").size(), 16U);
    EXPECT_EQ(replaced.at("x-request-id-replaced"),
              "an id of up to 128 printable ASCII characters is kept");
    const auto kept = trailers(collection, std::string(128, 'x'));
    EXPECT_EQ(kept.at("x-request-id"), std::string(128, 'x'));
    EXPECT_FALSE(kept.contains("x-request-id-replaced"));
  }
}

TEST_F(ErrorsTest, NeverShowsAPath) {
  for (const Outcome& outcome :
       {Search("collection: 'film' queries { id: 'x' }"), Search("collection: 'films'")}) {
    EXPECT_THAT(outcome.message, Not(HasSubstr("/")));
  }
}

}  // namespace
}  // namespace simile::integration
