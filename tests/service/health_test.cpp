#include "service/calls/health.h"

#include <atomic>
#include <deque>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "grpc/health/v1/health.pb.h"
#include "service/unshared_error.h"
#include "simile/limits.h"

namespace simile::service {
namespace {

using base::ErrorReason;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Request = Health::Request;
using Response = Health::Response;

// A call without gRPC.
template <class Interface>
class HealthCall : public Interface {
 public:
  std::string_view method() const override { return "grpc.health.v1.Health"; }
  std::string_view request_id() const override { return "4f1c"; }
  Clock::TimePoint arrived_at() const override { return {}; }
  CallerKey caller() const override { return key; }
  std::optional<Clock::TimePoint> deadline() const override { return {}; }
  std::stop_token cancelled() const override { return left.get_token(); }
  void SetReplyLimit(std::uint64_t /*bytes_max*/, std::string_view /*remedy*/) override {}
  void Finish(const absl::Status& status) override {
    EXPECT_FALSE(end.has_value()) << "finished twice";
    end = UnsharedError(status);
  }
  ErrorReason reason() const { return base::ReasonOf(*end); }

  CallerKey key = 0;
  std::stop_source left;
  std::optional<absl::Status> end;
};

class CheckCall final : public HealthCall<Call> {
 public:
  void FinishWith(const Reply& /*reply*/) override { ADD_FAILURE() << "has no reply"; }
};

class WatchCall final : public HealthCall<ProgressCall<Response>> {
 public:
  void Send(Response message) override {
    EXPECT_FALSE(end.has_value()) << "sent after the end";
    sent.push_back(message.status());
  }
  std::vector<int> sent;
};

class HealthTest : public testing::Test {
 protected:
  static Request Named(const std::string& name) {
    Request request;
    request.set_service(name);
    return request;
  }
  // The status; UNKNOWN when the name is not known.
  int Check(const std::string& name) {
    CheckCall call;
    Response response;
    health_.Check(call, Named(name), response);
    if (!call.end->ok()) {
      EXPECT_EQ(call.reason(), ErrorReason::kCollectionNotFound);
    }
    return response.status();
  }
  void Watch(const std::string& name, WatchCall& call) { health_.Watch(call, Named(name)); }

  Health health_;
};

TEST_F(HealthTest, ServesOnlyLivenessAtFirst) {
  EXPECT_EQ(Check("liveness"), Response::SERVING);
  EXPECT_EQ(Check(""), Response::NOT_SERVING);
  EXPECT_EQ(Check("films"), Response::UNKNOWN);
  EXPECT_EQ(health_.state(), ServingState::kStarting);
}

TEST_F(HealthTest, ServesWhatItWasSetToUntilTheDrain) {
  health_.SetServing(true);
  health_.SetCollectionServing("films", true);
  EXPECT_EQ(Check(""), Response::SERVING);
  EXPECT_EQ(Check("films"), Response::SERVING);
  EXPECT_EQ(health_.state(), ServingState::kServing);
  EXPECT_TRUE(health_.AnnounceDrain());
  EXPECT_FALSE(health_.AnnounceDrain());
  health_.SetCollectionServing("films", true);
  EXPECT_EQ(Check(""), Response::NOT_SERVING);
  EXPECT_EQ(Check("films"), Response::NOT_SERVING);
  EXPECT_EQ(Check("liveness"), Response::SERVING);
  EXPECT_EQ(health_.state(), ServingState::kDraining);
}

TEST_F(HealthTest, TellsWatchersOfEachChangeOfTheirName) {
  WatchCall films;
  WatchCall server;
  Watch("films", films);
  Watch("", server);
  health_.SetCollectionServing("films", true);
  health_.SetCollectionServing("films", true);
  health_.SetCollectionServing("films", false);
  EXPECT_THAT(films.sent,
              ElementsAre(Response::SERVICE_UNKNOWN, Response::SERVING, Response::NOT_SERVING));
  EXPECT_THAT(server.sent, ElementsAre(Response::NOT_SERVING));
}

TEST_F(HealthTest, RefusesNamesThatNoCollectionCanHave) {
  const Request request = Named(std::string(Limits().collection_name_bytes_max + 1, 'x'));
  WatchCall watch;
  health_.Watch(watch, request);
  EXPECT_EQ(watch.reason(), ErrorReason::kInvalidField);
  CheckCall check;
  Response response;
  health_.Check(check, request, response);
  EXPECT_EQ(check.reason(), ErrorReason::kInvalidField);
}

TEST_F(HealthTest, KeepsPlacesForOtherWatchersThanThoseOfOneCaller) {
  std::deque<WatchCall> calls;
  while (calls.empty() || !calls.back().end) Watch("", calls.emplace_back());
  EXPECT_EQ(calls.size(), 513U);
  EXPECT_EQ(calls.back().reason(), ErrorReason::kQueueFull);
  EXPECT_THAT(std::string(calls.back().end->message()),
              StartsWith("too many calls watch: 512 of 1,024 places are taken, 512 of them by this "
                         "caller"));
  calls.emplace_back().key = 1;
  Watch("", calls.back());
  EXPECT_FALSE(calls.back().end.has_value());
  calls.front().left.request_stop();
  calls[1].left.request_stop();
  Watch("", calls.emplace_back());
  EXPECT_FALSE(calls.back().end.has_value());
  health_.EndWatches();
}

TEST_F(HealthTest, ForgetsAWatcherThatLeaves) {
  WatchCall call;
  Watch("", call);
  call.left.request_stop();
  EXPECT_EQ(call.reason(), ErrorReason::kCancelled);
  health_.SetServing(true);
  EXPECT_THAT(call.sent, ElementsAre(Response::NOT_SERVING));
}

TEST_F(HealthTest, EndsTheWatchOfACallerThatHasLeftBefore) {
  WatchCall call;
  call.left.request_stop();
  Watch("", call);
  EXPECT_EQ(call.reason(), ErrorReason::kCancelled);
}

TEST_F(HealthTest, EndsWatchesWhenTheServerStops) {
  WatchCall before;
  Watch("", before);
  health_.EndWatches();
  EXPECT_EQ(before.end, absl::OkStatus()) << "so that its caller reads what it was told last";
  before.left.request_stop();
  WatchCall after;
  Watch("", after);
  EXPECT_EQ(after.reason(), ErrorReason::kStopping);
  EXPECT_THAT(after.sent, IsEmpty());
}

TEST_F(HealthTest, EndsEachWatchOnceWhileItsCallerLeavesAndTheServerStops) {
  constexpr int kRounds = 500;
  for (int round = 0; round < kRounds; ++round) {
    Health health;
    WatchCall call;
    health.Watch(call, Named(""));
    std::atomic<int> ready = 0;
    const auto together = [&ready] {
      ++ready;
      while (ready < 2) {
      }
    };
    std::thread leaving([&] {
      together();
      call.left.request_stop();
    });
    together();
    health.EndWatches();
    leaving.join();
    EXPECT_TRUE(call.end.has_value());
  }
}

}  // namespace
}  // namespace simile::service
