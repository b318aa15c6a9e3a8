// Options that Search, Recommend, Fetch and Lookup share.

#include <memory>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/films_server.h"
#include "integration/shared_calls.h"

namespace simile::integration {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

const std::set<std::string> kAllFields = {"cast", "genres", "media_id", "title", "year"};

class SharedOptionsTest : public testing::TestWithParam<SharedCall> {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<FilmsServer>(); }
  static void TearDownTestSuite() { server_.reset(); }

  SharedAnswer Make(const SharedOptions& options) const {
    return GetParam().make(client_, options);
  }
  // An answer that has rows, each with these fields of its payload.
  void ExpectFields(const SharedOptions& options, const std::set<std::string>& fields) const {
    const SharedAnswer answer = Make(options);
    ASSERT_TRUE(answer.outcome.ok()) << testing::PrintToString(answer.outcome);
    ASSERT_GE(answer.rows.size(), 3U);
    for (const SharedRow& row : answer.rows) EXPECT_EQ(row.payload_fields, fields) << row.id;
  }
  void ExpectRefused(const SharedOptions& options, const std::string& reason,
                     const std::string& field, const std::string& text) const {
    const Outcome outcome = Make(options).outcome;
    EXPECT_EQ(outcome.reason, reason) << testing::PrintToString(outcome);
    EXPECT_EQ(outcome.field, GetParam().field_prefix + field);
    EXPECT_THAT(outcome.message, HasSubstr(text));
  }

  inline static std::unique_ptr<FilmsServer> server_;
  const Client client_ = server_->NewClient();
};

INSTANTIATE_TEST_SUITE_P(All, SharedOptionsTest, testing::ValuesIn(SharedCalls()),
                         [](const auto& call) { return call.param.name; });

TEST_P(SharedOptionsTest, SelectAllOfThePayloadUnlessAskedOtherwise) {
  SharedOptions options;
  ExpectFields(options, kAllFields);
  options.payload.set_selection(v1::PayloadSelector::SELECTION_ALL);
  ExpectFields(options, kAllFields);
}

TEST_P(SharedOptionsTest, SelectNamedFieldsAlone) {
  SharedOptions options;
  options.payload.add_fields("year");
  options.payload.add_fields("title");
  options.payload.add_fields("year");
  ExpectFields(options, {"title", "year"});
}

TEST_P(SharedOptionsTest, SelectNone) {
  SharedOptions options;
  options.payload.set_selection(v1::PayloadSelector::SELECTION_NONE);
  ExpectFields(options, {});
}

TEST_P(SharedOptionsTest, RefuseAContradictorySelection) {
  SharedOptions options;
  options.payload.add_fields("year");
  options.payload.set_selection(v1::PayloadSelector::SELECTION_NONE);
  ExpectRefused(options, "INVALID_FIELD", "payload.fields", "together with SELECTION_NONE");
  options.payload.set_selection(v1::PayloadSelector::SELECTION_ALL);
  ExpectRefused(options, "INVALID_FIELD", "payload.fields", "together with SELECTION_ALL");
}

TEST_P(SharedOptionsTest, RefuseAnUnknownSelection) {
  SharedOptions options;
  options.payload.set_selection(static_cast<v1::PayloadSelector::Selection>(7));
  ExpectRefused(options, "INVALID_FIELD", "payload.selection", "7");
}

TEST_P(SharedOptionsTest, RefuseAnUnknownField) {
  SharedOptions options;
  options.payload.add_fields("year");
  options.payload.add_fields("genre");
  ExpectRefused(options, "UNKNOWN_PAYLOAD_FIELD", "payload.fields[1]", "Did you mean \"genres\"?");
}

TEST_P(SharedOptionsTest, ReturnVectorsAndRowsOnRequestOnly) {
  for (const SharedRow& row : Make({}).rows) {
    EXPECT_FALSE(row.has_vector) << row.id;
    EXPECT_FALSE(row.row.has_value()) << row.id;
  }
  SharedOptions options;
  options.with_rows = true;
  const SharedAnswer rows = Make(options);
  ASSERT_GE(rows.rows.size(), 3U);
  for (const SharedRow& row : rows.rows) {
    EXPECT_FALSE(row.has_vector) << row.id;
    EXPECT_LT(row.row.value_or(kFilmsRows), std::uint64_t{kFilmsRows}) << row.id;
  }
  options.with_rows = false;
  options.with_vectors = true;
  for (const SharedRow& row : Make(options).rows) {
    EXPECT_TRUE(row.has_vector) << row.id;
    EXPECT_FALSE(row.row.has_value()) << row.id;
  }
}

// One film is the same row in every call.
TEST_P(SharedOptionsTest, ReturnTheRowOfTheLoadedFiles) {
  SharedOptions options;
  options.with_rows = true;
  const SharedAnswer answer = Make(options);
  ASSERT_GE(answer.rows.size(), 3U);
  v1::FetchRequest request;
  request.set_collection("films");
  request.set_with_rows(true);
  for (const SharedRow& row : answer.rows) request.add_ids(row.id);
  v1::FetchResponse response;
  ASSERT_TRUE(client_.Fetch(request, response).ok());
  for (int index = 0; index < response.items_size(); ++index) {
    EXPECT_EQ(answer.rows[static_cast<std::size_t>(index)].row, response.items(index).row());
  }
}

TEST_P(SharedOptionsTest, AnswerFromTheExpectedSnapshotOnly) {
  SharedOptions options;
  const std::string served = Make(options).snapshot_id;
  EXPECT_THAT(served, MatchesRegex("[0-9a-f]{32}"));
  options.expected_snapshot_id = served;
  const SharedAnswer answer = Make(options);
  EXPECT_TRUE(answer.outcome.ok()) << testing::PrintToString(answer.outcome);
  EXPECT_EQ(answer.snapshot_id, served);

  options.expected_snapshot_id = std::string(32, '0');
  ExpectRefused(options, "SNAPSHOT_MISMATCH", "expected_snapshot_id", served);
  EXPECT_EQ(Make(options).outcome.code, absl::StatusCode::kFailedPrecondition);
  options.expected_snapshot_id = served.substr(0, 8);
  ExpectRefused(options, "SNAPSHOT_MISMATCH", "expected_snapshot_id", served);
}

TEST_P(SharedOptionsTest, RefuseAReplyLimitThatIsOutOfRange) {
  SharedOptions options;
  options.reply_bytes_max = 0;
  ExpectRefused(options, "INVALID_FIELD", "reply_bytes_max", "0; give 1 to 67,108,864");
  options.reply_bytes_max = (64U << 20) + 1;
  ExpectRefused(options, "INVALID_FIELD", "reply_bytes_max", "67,108,865; give 1 to 67,108,864");
}

// How many bytes a refused answer would have had, as its message says.
std::size_t BytesNeeded(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, absl::StatusCode::kInvalidArgument) << testing::PrintToString(outcome);
  EXPECT_EQ(outcome.reason, "REPLY_TOO_LARGE");
  EXPECT_THAT(outcome.message, MatchesRegex("the answer needs [0-9,]+ bytes and may have .*"));
  std::string digits;
  for (const char letter : outcome.message.substr(0, outcome.message.find(" bytes"))) {
    if (letter >= '0' && letter <= '9') digits += letter;
  }
  return digits.empty() ? 0 : std::stoul(digits);
}

// The times in a receipt may take a byte more or less than in the answer before. The limit follows
// them until two answers in a row have the same size.
constexpr int kTriesMax = 100;

TEST_P(SharedOptionsTest, TakeAReplyOfExactlyTheLimit) {
  SharedOptions options;
  std::size_t bytes = Make(options).bytes;
  for (int tries = 1;; ++tries) {
    options.reply_bytes_max = static_cast<std::uint32_t>(bytes);
    const SharedAnswer answer = Make(options);
    if (answer.outcome.ok() && answer.bytes == bytes) break;
    const std::size_t other = answer.outcome.ok() ? answer.bytes : BytesNeeded(answer.outcome);
    ASSERT_EQ(other < bytes, answer.outcome.ok()) << other << " bytes under " << bytes;
    ASSERT_LT(tries, kTriesMax);
    bytes = other;
  }
}

TEST_P(SharedOptionsTest, RefuseAReplyOfOneByteMoreThanTheLimit) {
  SharedOptions options;
  std::size_t bytes = Make(options).bytes;
  for (int tries = 1;; ++tries) {
    options.reply_bytes_max = static_cast<std::uint32_t>(bytes - 1);
    const SharedAnswer answer = Make(options);
    const std::size_t other = answer.outcome.ok() ? answer.bytes : BytesNeeded(answer.outcome);
    if (!answer.outcome.ok() && other == bytes) break;
    ASSERT_EQ(other < bytes, answer.outcome.ok()) << other << " bytes under " << bytes - 1;
    ASSERT_LT(tries, kTriesMax);
    bytes = other;
  }
}

TEST_P(SharedOptionsTest, SayHowLargeAFarTooLargeReplyWouldBe) {
  SharedOptions options;
  options.with_vectors = true;
  options.reply_bytes_max = 100;
  const Outcome outcome = Make(options).outcome;
  EXPECT_GT(BytesNeeded(outcome), kFilmsDim * sizeof(float));
  EXPECT_THAT(outcome.message,
              MatchesRegex(".* and may have 100; .* or raise .*reply_bytes_max.*"));
}

TEST_P(SharedOptionsTest, HideRowsThatDoNotPassTheRequiredFilter) {
  SharedOptions options;
  options.required_filter = "year = 1900";
  const SharedAnswer answer = Make(options);
  for (const SharedRow& row : answer.rows) EXPECT_THAT(row.id, testing::EndsWith("-1900"));
  // The films that Search starts from and Fetch asks for do not exist; the other calls find fewer.
  const std::string name = GetParam().name;
  EXPECT_EQ(answer.outcome.ok(), name == "Recommend" || name == "Lookup");
  if (!answer.outcome.ok()) {
    EXPECT_EQ(answer.outcome.reason, "ITEM_NOT_FOUND");
    EXPECT_THAT(answer.outcome.message, testing::Not(HasSubstr("Did you mean")));
  }
}

TEST(ReplyLimitTest, OfDescribeFieldsCountsTheWholeResponse) {
  v1::DescribeFieldsRequest request;
  request.set_collection("films");
  request.set_values_max(100);
  v1::DescribeFieldsResponse response;
  const FilmsServer ample;
  ASSERT_TRUE(ample.NewClient().DescribeFields(request, response).ok());
  const std::size_t bytes = response.ByteSizeLong();
  const auto describe_within = [&](std::size_t bytes_max) {
    const FilmsServer server([&](app::Config& config) {
      config.limits.reply_bytes_default = static_cast<std::uint32_t>(bytes_max);
    });
    return server.NewClient().DescribeFields(request, response);
  };
  EXPECT_TRUE(describe_within(bytes).ok());
  EXPECT_EQ(BytesNeeded(describe_within(bytes - 1)), bytes);
}

}  // namespace
}  // namespace simile::integration
