#include "cli/errors.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace simile::cli {
namespace {

using nlohmann::json;

// A server's details: reason, field, and a wait of 1.25 s.
std::string RpcStatus() {
  google::rpc::Status status;
  google::rpc::ErrorInfo info;
  info.set_reason("QUEUE_FULL");
  info.set_domain("simile");
  status.add_details()->PackFrom(info);
  google::rpc::BadRequest bad_request;
  bad_request.add_field_violations()->set_field("queries[3].k");
  status.add_details()->PackFrom(bad_request);
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(1);
  retry.mutable_retry_delay()->set_nanos(250'000'000);
  status.add_details()->PackFrom(retry);
  return status.SerializeAsString();
}

TEST(ErrorDetailsTest, ReadsReasonFieldAndRetryTime) {
  const ErrorDetails details =
      ParseDetails(WithDetails(absl::ResourceExhaustedError("the queue is full"), RpcStatus()));
  EXPECT_EQ(details.reason, "QUEUE_FULL");
  EXPECT_EQ(details.field, "queries[3].k");
  EXPECT_EQ(details.retry_after_ms, 1'250);
}

TEST(ErrorDetailsTest, IsEmptyWithoutDetailsOrWithOtherBytes) {
  for (const char* bytes : {"", "\xFF\xFF"}) {
    const ErrorDetails details = ParseDetails(WithDetails(absl::NotFoundError("no"), bytes));
    EXPECT_EQ(details.reason, "");
    EXPECT_EQ(details.field, "");
    EXPECT_FALSE(details.retry_after_ms.has_value());
  }
}

TEST(ErrorDetailsTest, KeepsDetailsUnderAnotherMessage) {
  const absl::Status changed = base::WithMessage(
      WithDetails(absl::ResourceExhaustedError("the queue is full"), RpcStatus()), "try later");
  EXPECT_EQ(changed.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(changed.message(), "try later");
  EXPECT_EQ(ParseDetails(changed).reason, "QUEUE_FULL");
}

TEST(ErrorDetailsTest, AddsAdviceAsASentenceOfItsOwn) {
  const auto advised = [](const char* message) {
    return std::string(
        WithAdvice(WithDetails(absl::NotFoundError(message), RpcStatus()), "Try --id.").message());
  };
  EXPECT_EQ(advised("no item"), "no item. Try --id.");
  EXPECT_EQ(advised("no item. Did you mean \"a\"?"), "no item. Did you mean \"a\"? Try --id.");
  EXPECT_EQ(advised("no item."), "no item. Try --id.");
  const absl::Status error = WithDetails(absl::NotFoundError("no item"), RpcStatus());
  EXPECT_EQ(ParseDetails(WithAdvice(error, "Try --id.")).reason, "QUEUE_FULL");
}

TEST(ErrorTextTest, SaysHowLongToWait) {
  EXPECT_EQ(ErrorText(absl::NotFoundError("no collection")), "no collection");
  EXPECT_EQ(ErrorText(WithDetails(absl::ResourceExhaustedError("the queue is full"), RpcStatus())),
            "the queue is full; try again in 1.3 s");
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_nanos(40'000'000);
  google::rpc::Status status;
  status.add_details()->PackFrom(retry);
  EXPECT_EQ(
      ErrorText(WithDetails(absl::ResourceExhaustedError("full"), status.SerializeAsString())),
      "full; try again in 40 ms");
}

TEST(ErrorJsonTest, HasEveryDetailOrNull) {
  EXPECT_EQ(json::parse(ErrorJson(
                WithDetails(absl::ResourceExhaustedError("the queue is full"), RpcStatus()))),
            json::parse(R"({"error":{"code":"RESOURCE_EXHAUSTED","reason":"QUEUE_FULL",
                "field":"queries[3].k","retry_after_ms":1250,"message":"the queue is full"}})"));
  EXPECT_EQ(json::parse(ErrorJson(absl::UnavailableError("cannot reach a server"))),
            json::parse(R"({"error":{"code":"UNAVAILABLE","reason":null,"field":null,
                "retry_after_ms":null,"message":"cannot reach a server"}})"));
}

}  // namespace
}  // namespace simile::cli
