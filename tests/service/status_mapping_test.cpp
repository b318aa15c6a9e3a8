#include "service/status_mapping.h"

#include <string>

#include <gtest/gtest.h>

namespace simile::service {
namespace {

TEST(StatusMappingTest, SendsTheMessageOfTheCallersErrors) {
  EXPECT_EQ(MessageForCaller(absl::NotFoundError("no user \"x\""), "4f1c"), "no user \"x\"");
}

TEST(StatusMappingTest, HidesInternalDetails) {
  const std::string terse =
      "internal error; the server's log has the details under request id 4f1c";
  EXPECT_EQ(MessageForCaller(absl::InternalError("/srv/data/x at 0x7f"), "4f1c"), terse);
  EXPECT_EQ(MessageForCaller(absl::UnknownError("x"), "4f1c"), terse);
  EXPECT_EQ(MessageForCaller(absl::DataLossError("x"), "4f1c"), terse);
}

TEST(StatusMappingTest, CutsLongMessagesAtAWholeCharacter) {
  // Two-byte letters from an odd offset: the cut would fall into one.
  std::string letters = "x";
  for (int index = 0; index < 2'000; ++index) letters += "\xC3\xA9";
  const std::string sent = MessageForCaller(absl::NotFoundError(letters), "id");
  EXPECT_EQ(sent, letters.substr(0, 1'997) + "...");
  EXPECT_LE(sent.size(), kErrorMessageBytesMax);
  const std::string even = MessageForCaller(absl::NotFoundError(letters.substr(1)), "id");
  EXPECT_EQ(even, letters.substr(1, 1'996) + "...");
}

TEST(StatusMappingTest, NamesCodesAsGrpcDoes) {
  EXPECT_EQ(absl::StatusCodeToString(absl::StatusCode::kOk), "OK");
  EXPECT_EQ(absl::StatusCodeToString(absl::StatusCode::kDeadlineExceeded), "DEADLINE_EXCEEDED");
  EXPECT_EQ(absl::StatusCodeToString(absl::StatusCode::kUnknown), "UNKNOWN");
}

}  // namespace
}  // namespace simile::service
