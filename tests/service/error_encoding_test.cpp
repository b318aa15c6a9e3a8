#include "service/replies/error_encoding.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace simile::service {
namespace {

using base::ErrorReason;

// The detail of a type; a default one when there is none.
template <class Detail>
Detail Find(const google::rpc::Status& status) {
  Detail detail;
  int found = 0;
  for (const auto& any : status.details()) found += any.UnpackTo(&detail) ? 1 : 0;
  EXPECT_LE(found, 1);
  return detail;
}

TEST(EncodeErrorTest, NamesTheReason) {
  const auto sent = EncodeError(base::Error(ErrorReason::kUserNotFound, "no user \"x\""), "4f1c");
  EXPECT_EQ(sent.code(), static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_EQ(sent.message(), "no user \"x\"");
  ASSERT_EQ(sent.details_size(), 1);
  const auto info = Find<google::rpc::ErrorInfo>(sent);
  EXPECT_EQ(info.reason(), "USER_NOT_FOUND");
  EXPECT_EQ(info.domain(), "simile");
  ASSERT_EQ(info.metadata_size(), 1);
  EXPECT_EQ(info.metadata().at("request_id"), "4f1c");
}

TEST(EncodeErrorTest, GivesEveryReasonItsNameAndCode) {
  for (const base::ErrorReasonInfo& reason : base::ErrorReasons()) {
    const auto sent = EncodeError(base::Error(reason.reason, "x"), "4f1c");
    EXPECT_EQ(sent.code(), static_cast<int>(reason.code)) << reason.name;
    EXPECT_EQ(Find<google::rpc::ErrorInfo>(sent).reason(), reason.name);
  }
}

TEST(EncodeErrorTest, NamesTheFieldThatIsWrong) {
  const auto sent = EncodeError(base::Error(ErrorReason::kInvalidField,
                                            "queries[3].k: 0; ask for 1 to 10,000", "queries[3].k"),
                                "4f1c");
  ASSERT_EQ(sent.details_size(), 2);
  const auto bad = Find<google::rpc::BadRequest>(sent);
  ASSERT_EQ(bad.field_violations_size(), 1);
  EXPECT_EQ(bad.field_violations(0).field(), "queries[3].k");
  EXPECT_EQ(bad.field_violations(0).description(), "queries[3].k: 0; ask for 1 to 10,000");
}

TEST(EncodeErrorTest, SaysWhenToRetry) {
  const auto sent = EncodeError(base::WithRetryAfter(base::Error(ErrorReason::kQueueFull, "full"),
                                                     std::chrono::milliseconds(1'250)),
                                "4f1c");
  ASSERT_EQ(sent.details_size(), 2);
  const auto retry = Find<google::rpc::RetryInfo>(sent);
  EXPECT_EQ(retry.retry_delay().seconds(), 1);
  EXPECT_EQ(retry.retry_delay().nanos(), 250'000'000);
}

TEST(EncodeErrorTest, HidesFaultsOfTheServer) {
  const std::string terse =
      "internal error; the server's log has the details under request id 4f1c";
  const absl::Status fault =
      base::WithRetryAfter(base::Error(ErrorReason::kInternal, "/srv/data/x at 0x7f", "queries"),
                           std::chrono::milliseconds(100));
  for (const absl::Status& error : {fault, absl::InternalError("/srv/data/x"),
                                    absl::UnknownError("x"), absl::NotFoundError("x")}) {
    const auto sent = EncodeError(error, "4f1c");
    EXPECT_TRUE(IsServerFault(error));
    EXPECT_EQ(sent.code(), static_cast<int>(absl::StatusCode::kInternal));
    EXPECT_EQ(sent.message(), terse);
    ASSERT_EQ(sent.details_size(), 1);
    EXPECT_EQ(Find<google::rpc::ErrorInfo>(sent).reason(), "INTERNAL");
    EXPECT_EQ(sent.SerializeAsString().find("srv"), std::string::npos);
  }
  EXPECT_FALSE(IsServerFault(base::Error(ErrorReason::kItemNotFound, "x")));
}

TEST(EncodeErrorTest, CutsPlainMessagesAtTwoThousandBytes) {
  const std::string text(3'000, 'x');
  EXPECT_EQ(EncodeError(base::Error(ErrorReason::kItemNotFound, text), "id").message(),
            text.substr(0, 1'997) + "...");
  const std::string longest(2'000, 'x');
  EXPECT_EQ(EncodeError(base::Error(ErrorReason::kItemNotFound, longest), "id").message(), longest);
}

TEST(EncodeErrorTest, CutsAtAWholeCharacter) {
  // Two-byte letters from an even and from an odd offset: one of the two cuts would fall into a
  // letter.
  std::string letters;
  for (int index = 0; index < 2'000; ++index) letters += "\xC3\xA9";
  for (const std::string& text : {letters, "x" + letters}) {
    std::string sent = EncodeError(base::Error(ErrorReason::kItemNotFound, text), "id").message();
    ASSERT_TRUE(sent.ends_with("..."));
    sent.resize(sent.size() - 3);
    EXPECT_TRUE(text.starts_with(sent));
    EXPECT_TRUE(sent.ends_with("\xC3\xA9"));
    EXPECT_GT(sent.size(), 1'000U);
  }
}

// The bytes of an error in the trailing metadata: its message percent-encoded, its details as
// base64.
std::size_t MetadataBytes(const google::rpc::Status& sent) {
  std::size_t bytes = (sent.SerializeAsString().size() + 2) / 3 * 4;
  for (const char c : sent.message()) bytes += c >= ' ' && c <= '~' && c != '%' ? 1 : 3;
  return bytes;
}

TEST(EncodeErrorTest, LeavesBytesForOtherMetadata) {
  std::string letters;
  for (int index = 0; index < 3'000; ++index) letters += "\xC3\xA9";
  for (const std::string& text : {letters, std::string(6'000, 'x'), std::string(6'000, '%')}) {
    const absl::Status error = base::WithRetryAfter(
        base::Error(ErrorReason::kUnknownPayloadField, text, std::string(2'000, 'f')),
        std::chrono::milliseconds(100));
    const auto sent = EncodeError(error, std::string(140, 'r'));
    EXPECT_LE(MetadataBytes(sent), kErrorMetadataBytesMax);
    EXPECT_EQ(sent.details_size(), 3);
    EXPECT_LE(Find<google::rpc::BadRequest>(sent).field_violations(0).description().size(),
              kFieldDescriptionBytesMax);
  }
}

TEST(EncodeErrorTest, NamesCodesAsGrpcDoes) {
  EXPECT_EQ(absl::StatusCodeToString(absl::StatusCode::kOk), "OK");
  EXPECT_EQ(absl::StatusCodeToString(absl::StatusCode::kDeadlineExceeded), "DEADLINE_EXCEEDED");
  EXPECT_EQ(absl::StatusCodeToString(absl::StatusCode::kUnknown), "UNKNOWN");
}

}  // namespace
}  // namespace simile::service
