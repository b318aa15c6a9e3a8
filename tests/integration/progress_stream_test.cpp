#include "service/grpc/progress_stream.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/await_true.h"
#include "base/error_detail.h"
#include "integration/raw_call.h"
#include "net/server.h"
#include "observe/build_info.h"
#include "service/grpc/method.h"
#include "simile/v1/collections.pb.h"

// The transport of Load, Reload and Rollback, with a handler of the test's own.
namespace simile::integration {
namespace {

using ProgressCall = service::ProgressCall<v1::LoadCollectionResponse>;

constexpr char kLoad[] = "/simile.v1.CollectionService/LoadCollection";

class ProgressStreamTest : public testing::Test {
 protected:
  ProgressStreamTest() {
    std::vector<net::RpcMethod*> served;
    for (const auto& method : methods_) served.push_back(method.get());
    auto server = net::Server::Start({}, limits_, {served, clock_, metrics_, log_});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    server_->Accept();
  }

  // Starts a call, and returns both sides of it.
  std::pair<RawCall, ProgressCall*> Begin() {
    std::future<ProgressCall*> arrived = arrived_.get_future();
    RawCall caller(server_->address(), kLoad);
    v1::LoadCollectionRequest request;
    request.set_collection("films");
    EXPECT_TRUE(caller.Send(request.SerializeAsString()));
    caller.HalfClose();
    return {std::move(caller), arrived.get()};
  }
  // A server that drains waits for its calls.
  void AwaitNoCalls() { EXPECT_TRUE(server_->Drain(std::chrono::hours(1))); }

  // The one method of the server, which gives each call that arrives to the test.
  std::vector<std::unique_ptr<service::Method>> Methods() {
    std::vector<std::unique_ptr<service::Method>> methods;
    methods.push_back(service::Progress<v1::LoadCollectionRequest, v1::LoadCollectionResponse>(
        environment_, {.path = kLoad},
        [this](ProgressCall& call, const v1::LoadCollectionRequest& asked) {
          EXPECT_EQ(asked.collection(), "films");
          std::exchange(arrived_, {}).set_value(&call);
        }));
    return methods;
  }

  const RealClock clock_;
  const observe::Logger log_{{observe::LogFormat::kText, observe::LogLevel::kError, nullptr}};
  observe::Metrics metrics_{observe::GetBuildInfo()};
  Limits limits_;
  observe::FailureLines failure_lines_{log_, clock_};
  observe::AuditLog audit_{log_, clock_};
  service::AccessControl access_{clock_};
  service::RpcEnvironment environment_{clock_,
                                       log_,
                                       failure_lines_,
                                       audit_,
                                       metrics_,
                                       limits_,
                                       access_,
                                       false,
                                       service::RequestIds(1),
                                       service::ResolveWorkers({}, clock_)};
  std::promise<ProgressCall*> arrived_;
  const std::vector<std::unique_ptr<service::Method>> methods_ = Methods();
  std::unique_ptr<net::Server> server_;
};

//   padding  bytes beside the number
v1::LoadCollectionResponse ProgressMessage(std::uint64_t number, std::size_t padding = 0) {
  v1::LoadCollectionResponse message;
  message.mutable_progress()->set_bytes_read(number);
  message.mutable_progress()->set_file(std::string(padding, 'x'));
  return message;
}

// The numbers of the messages that are still to come.
std::vector<std::uint64_t> ReadAll(RawCall& caller) {
  std::vector<std::uint64_t> numbers;
  while (const auto bytes = caller.Read()) {
    v1::LoadCollectionResponse message;
    EXPECT_TRUE(message.ParseFromString(*bytes));
    numbers.push_back(message.progress().bytes_read());
  }
  return numbers;
}

TEST_F(ProgressStreamTest, SendsTheLatestMessageToACallerThatReadsSlowly) {
  constexpr std::uint64_t kMessages = 5'000;
  constexpr std::size_t kPadding = 100'000;  // half a gigabyte together
  auto [caller, call] = Begin();
  for (std::uint64_t number = 1; number <= kMessages; ++number) {
    call->Send(ProgressMessage(number, kPadding));
  }
  call->Finish(absl::OkStatus());
  const std::vector<std::uint64_t> numbers = ReadAll(caller);
  EXPECT_TRUE(caller.AwaitEnd().ok());
  ASSERT_FALSE(numbers.empty());
  EXPECT_EQ(numbers.back(), kMessages);
  // Only the messages that the buffers on the way took.
  EXPECT_LT(numbers.size(), kMessages / 2);
  for (std::size_t i = 1; i < numbers.size(); ++i) EXPECT_LT(numbers[i - 1], numbers[i]);
}

TEST_F(ProgressStreamTest, SendsEachMessageToACallerThatReadsAtOnce) {
  auto [caller, call] = Begin();
  for (std::uint64_t number = 1; number <= 100; ++number) {
    call->Send(ProgressMessage(number));
    v1::LoadCollectionResponse message;
    ASSERT_TRUE(message.ParseFromString(caller.Read().value_or("")));
    ASSERT_EQ(message.progress().bytes_read(), number);
  }
  call->Finish(absl::OkStatus());
  EXPECT_TRUE(ReadAll(caller).empty());
  EXPECT_TRUE(caller.AwaitEnd().ok());
}

TEST_F(ProgressStreamTest, AlwaysSendsTheLastMessageBeforeTheEnd) {
  constexpr std::uint32_t kRounds = 300;
  for (std::uint32_t seed = 1; seed <= kRounds; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    auto [caller, call] = Begin();
    const std::uint64_t messages = 1 + random() % 20;
    const std::size_t padding = random() % 3 == 0 ? 20'000 : 0;
    std::thread sending([&, call = call] {
      for (std::uint64_t number = 1; number <= messages; ++number) {
        call->Send(ProgressMessage(number, padding));
      }
      call->Finish(absl::OkStatus());
    });
    const std::vector<std::uint64_t> numbers = ReadAll(caller);
    sending.join();
    EXPECT_TRUE(caller.AwaitEnd().ok());
    ASSERT_FALSE(numbers.empty());
    ASSERT_EQ(numbers.back(), messages);
  }
  AwaitNoCalls();
}

TEST_F(ProgressStreamTest, EndsWithAnErrorAfterProgress) {
  constexpr std::uint64_t kMessages = 5'000;
  auto [caller, call] = Begin();
  for (std::uint64_t number = 1; number <= kMessages; ++number) {
    call->Send(ProgressMessage(number, 100'000));
  }
  call->Finish(base::Error(base::ErrorReason::kDoesNotFit, "too large"));
  EXPECT_LT(ReadAll(caller).size(), kMessages / 2);
  const Outcome end = caller.AwaitEnd();
  EXPECT_EQ(end.code, absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(end.reason, "DOES_NOT_FIT");
  EXPECT_EQ(end.message, "too large");
}

TEST_F(ProgressStreamTest, NoticesACallerThatLeaves) {
  auto [caller, call] = Begin();
  const std::stop_token left = call->cancelled();
  EXPECT_FALSE(left.stop_requested());
  call->Send(ProgressMessage(1));
  caller.Cancel();
  ASSERT_TRUE(base::AwaitTrue([&] { return left.stop_requested(); }));
  // Nobody reads them.
  for (std::uint64_t number = 2; number <= 1'000; ++number)
    call->Send(ProgressMessage(number, 100'000));
  call->Finish(absl::OkStatus());
  AwaitNoCalls();
}

TEST_F(ProgressStreamTest, RefusesAMessageThatIsTooLargeUnlessAnotherOneFollows) {
  {
    auto [caller, call] = Begin();
    call->SetReplyLimit(100, "ask for less");
    call->Send(ProgressMessage(1, 1'000));
    call->Finish(absl::OkStatus());
    EXPECT_TRUE(ReadAll(caller).empty());
    EXPECT_EQ(caller.AwaitEnd().reason, "REPLY_TOO_LARGE");
  }
  auto [caller, call] = Begin();
  call->SetReplyLimit(100, "ask for less");
  call->Send(ProgressMessage(1, 1'000));
  call->Send(ProgressMessage(2));
  call->Finish(absl::OkStatus());
  EXPECT_EQ(ReadAll(caller), std::vector<std::uint64_t>{2});
  EXPECT_TRUE(caller.AwaitEnd().ok());
}

TEST_F(ProgressStreamTest, RefusesARequestThatIsMuchLargerThanItsFields) {
  RawCall caller(server_->address(), kLoad);
  v1::LoadCollectionRequest request;
  request.set_collection(std::string(100'000, 'x'));
  EXPECT_TRUE(caller.Send(request.SerializeAsString()));
  caller.HalfClose();
  EXPECT_TRUE(ReadAll(caller).empty());
  EXPECT_EQ(caller.AwaitEnd().reason, "REQUEST_NOT_PARSED");
}

TEST_F(ProgressStreamTest, CutsACallWhoseMessageIsNotRead) {
  limits_.search_deadline_max = std::chrono::milliseconds(1);
  auto [caller, call] = Begin();
  // Until the buffers on the way take no more.
  EXPECT_TRUE(base::AwaitTrue([&] {
    call->Send(ProgressMessage(1, 3'000'000));
    return call->cancelled().stop_requested();
  }));
  call->Finish(absl::OkStatus());
  AwaitNoCalls();
  ReadAll(caller);
  EXPECT_EQ(caller.AwaitEnd().code, absl::StatusCode::kCancelled);  // not by its own deadline
}

TEST_F(ProgressStreamTest, CutsACallThatIsNotFinishedWhenTheServerStops) {
  auto [caller, call] = Begin();
  call->Send(ProgressMessage(1));
  EXPECT_FALSE(server_->Drain(std::chrono::milliseconds(1)));
  EXPECT_TRUE(base::AwaitTrue([&] { return call->cancelled().stop_requested(); }));
  call->Finish(absl::OkStatus());
  ReadAll(caller);  // gRPC tells the end behind what arrived before it
  EXPECT_FALSE(caller.AwaitEnd().ok());
}

}  // namespace
}  // namespace simile::integration
