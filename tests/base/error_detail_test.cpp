#include "base/error_detail.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>

#include <absl/status/status.h>
#include <absl/strings/cord.h>
#include <gtest/gtest.h>

namespace simile::base {
namespace {

using std::chrono::milliseconds;

TEST(ErrorDetailTest, NamesEveryReasonOnceInUpperCase) {
  std::set<std::string> names;
  for (const ErrorReasonInfo& info : ErrorReasons()) {
    const std::string name(info.name);
    EXPECT_TRUE(names.insert(name).second) << name << " is there twice";
    EXPECT_TRUE(std::ranges::all_of(name, [](char letter) {
      return letter == '_' || (letter >= 'A' && letter <= 'Z');
    })) << name;
    EXPECT_NE(info.code, absl::StatusCode::kOk) << name;
    EXPECT_FALSE(info.meaning.empty()) << name;
  }
}

TEST(ErrorDetailTest, GivesEveryReasonItsCode) {
  for (const ErrorReasonInfo& info : ErrorReasons()) {
    EXPECT_EQ(&InfoOf(info.reason), &info);
    const absl::Status error = Error(info.reason, "what was wrong");
    EXPECT_EQ(error.code(), info.code) << info.name;
    EXPECT_EQ(error.message(), "what was wrong");
    EXPECT_EQ(ReasonOf(error), info.reason) << info.name;
    EXPECT_EQ(FieldOf(error), "");
    EXPECT_EQ(ReadRetryAfter(error), std::nullopt);
  }
}

TEST(ErrorDetailTest, KeepsFieldAndRetryTimeBesideTheReason) {
  const absl::Status error =
      WithRetryAfter(Error(ErrorReason::kQueueFull, "full", "queries[3].k"), milliseconds(70));
  EXPECT_EQ(ReasonOf(error), ErrorReason::kQueueFull);
  EXPECT_EQ(FieldOf(error), "queries[3].k");
  EXPECT_EQ(ReadRetryAfter(error), milliseconds(70));
}

TEST(ErrorDetailTest, ReplacesAnEarlierField) {
  const absl::Status error = WithField(Error(ErrorReason::kInvalidField, "0", "k"), "queries[1].k");
  EXPECT_EQ(FieldOf(error), "queries[1].k");
}

TEST(ErrorDetailTest, KeepsAllDetailsWithAnotherMessage) {
  const absl::Status error = WithMessage(
      WithRetryAfter(Error(ErrorReason::kInvalidFilter, "column 3: no", "filter"), milliseconds(5)),
      "queries[0].filter: column 3: no");
  EXPECT_EQ(error.message(), "queries[0].filter: column 3: no");
  EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(error), ErrorReason::kInvalidFilter);
  EXPECT_EQ(FieldOf(error), "filter");
  EXPECT_EQ(ReadRetryAfter(error), milliseconds(5));
}

TEST(ErrorDetailTest, GivesAReasonToAnErrorWithoutOneOnly) {
  absl::Status foreign = absl::NotFoundError("metadata.jsonl: no such file");
  foreign.SetPayload("other", absl::Cord("kept"));
  const absl::Status error = WithReason(foreign, ErrorReason::kInvalidFiles);
  EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(error.message(), foreign.message());
  EXPECT_EQ(ReasonOf(error), ErrorReason::kInvalidFiles);
  EXPECT_EQ(error.GetPayload("other"), absl::Cord("kept"));

  const absl::Status changed = Error(ErrorReason::kFilesChanged, "vectors.npy: has changed");
  EXPECT_EQ(WithReason(changed, ErrorReason::kInvalidFiles), changed);
}

TEST(ErrorDetailTest, TakesTheMostGeneralReasonForForeignErrors) {
  EXPECT_EQ(ReasonOf(absl::InvalidArgumentError("")), ErrorReason::kInvalidField);
  EXPECT_EQ(ReasonOf(absl::OutOfRangeError("")), ErrorReason::kInvalidField);
  EXPECT_EQ(ReasonOf(absl::ResourceExhaustedError("")), ErrorReason::kOutOfMemory);
  EXPECT_EQ(ReasonOf(absl::DeadlineExceededError("")), ErrorReason::kDeadlineExceeded);
  EXPECT_EQ(ReasonOf(absl::CancelledError("")), ErrorReason::kCancelled);
  for (const absl::Status& error :
       {absl::NotFoundError(""), absl::AlreadyExistsError(""), absl::AbortedError(""),
        absl::FailedPreconditionError(""), absl::PermissionDeniedError(""),
        absl::UnavailableError(""), absl::InternalError(""), absl::UnknownError(""),
        absl::DataLossError(""), absl::UnimplementedError(""), absl::UnauthenticatedError("")}) {
    EXPECT_EQ(ReasonOf(error), ErrorReason::kInternal) << error;
  }
}

}  // namespace
}  // namespace simile::base
