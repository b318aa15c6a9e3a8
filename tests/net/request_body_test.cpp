#include "net/request_body.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/fake_clock.h"
#include "net/http2_frames.h"

namespace simile::net {
namespace {

constexpr std::uint32_t kMessageBytesMax = 1U << 20;
constexpr std::uint64_t kBudget = 2U << 20;

class Posted final : public EventLoop::Task {
 public:
  void Run() override {}
};

std::string Framed(const std::string& message) {
  return MessagePrefix(static_cast<std::uint32_t>(message.size())) + message;
}

class RequestBodyTest : public testing::Test {
 protected:
  std::size_t Add(RequestBody& body, const std::string& bytes) {
    return body.Add({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  }
  std::unique_ptr<RequestBody> NewBody(Posted& waiter) {
    return std::make_unique<RequestBody>(kMessageBytesMax, budget_, loop_, waiter);
  }

  engine::FakeClock clock_;
  EventLoop loop_{"test-loop", {}, clock_};  // never runs
  std::shared_ptr<PeerBudget> budget_ =
      std::make_shared<PeerBudget>(Limits{.unfinished_bytes_per_peer_max = kBudget}, clock_);
  Posted waiter_;
  Posted other_;
  std::unique_ptr<RequestBody> body_ = NewBody(waiter_);
};

TEST_F(RequestBodyTest, MakesMessagesOfBytesInPiecesOfAnySize) {
  std::mt19937 random(3);
  std::vector<std::string> messages;
  std::string all;
  for (int i = 0; i < 200; ++i) {
    std::string& message = messages.emplace_back(random() % (i % 10 == 0 ? 60'000 : 40), '\0');
    for (char& byte : message) byte = static_cast<char>(random());
    all += Framed(message);
  }
  for (int round = 0; round < 30; ++round) {
    const auto body = NewBody(other_);
    std::size_t consumed = 0;
    std::vector<std::string> taken;
    bool wanted = false;
    const auto take = [&] {
      if (body->is_whole()) {
        taken.emplace_back(body->PopMessage().text());
        wanted = false;
      }
      // Some messages are wanted late.
      if (!wanted && random() % 3 != 0) {
        wanted = true;
        consumed += body->Want();
      }
    };
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t size = std::min<std::size_t>(1 + random() % 5'000, all.size() - at);
      consumed += Add(*body, all.substr(at, size));
      at += size;
      take();
    }
    while (taken.size() < messages.size()) take();
    EXPECT_EQ(taken, messages);
    EXPECT_EQ(consumed, all.size());
    EXPECT_TRUE(body->is_between_messages());
  }
}

TEST_F(RequestBodyTest, RefusesMessagesThatAreTooLargeOrFlagged) {
  using Problem = RequestBody::Problem;
  const std::pair<std::string, Problem> cases[] = {
      {MessagePrefix(kMessageBytesMax + 1), Problem::kTooLarge},
      {MessagePrefix(0xffff'ffff), Problem::kTooLarge},
      {std::string("\x01\0\0\0\x01", 5), Problem::kCompressed},
      {std::string("\x02\0\0\0\x01", 5), Problem::kUnknownFlag},
  };
  for (const auto& [bytes, problem] : cases) {
    const auto body = NewBody(other_);
    body->Want();
    EXPECT_EQ(Add(*body, bytes + "more"), bytes.size() + 4) << "the peer may send on";
    EXPECT_EQ(body->problem(), problem);
  }
}

TEST_F(RequestBodyTest, CountsAMessageByItsDeclaredLengthUntilItIsDestroyed) {
  body_->Want();
  Add(*body_, MessagePrefix(1U << 20) + "begin");
  EXPECT_TRUE(body_->is_counted());
  EXPECT_EQ(body_->missing_bytes(), (1U << 20) - 5);
  Add(*body_, std::string((1U << 20) - 5, 'x'));
  ASSERT_TRUE(body_->is_whole());
  EXPECT_TRUE(body_->is_counted());
  {
    const ReceivedMessage message = body_->PopMessage();
    EXPECT_FALSE(body_->is_counted());
    PeerBudget::Part rest;
    EXPECT_FALSE(budget_->Hold(kBudget - (1U << 20), PeerBudget::Kind::kMessages, rest));
  }
  PeerBudget::Part rest;
  EXPECT_TRUE(budget_->Hold(kBudget, PeerBudget::Kind::kMessages, rest));
}

TEST_F(RequestBodyTest, WaitsForSpaceAndGoesOnInTheOrderOfCalls) {
  PeerBudget::Part taken;
  ASSERT_TRUE(budget_->Hold(kBudget, PeerBudget::Kind::kMessages, taken));
  const auto later = NewBody(other_);
  body_->Want();
  later->Want();
  const std::string message(10'000, 'm');
  EXPECT_EQ(Add(*body_, Framed(message)), 5U) << "the prefix";
  EXPECT_EQ(Add(*later, Framed(message)), 5U);
  EXPECT_TRUE(body_->is_waiting() && later->is_waiting());
  EXPECT_EQ(body_->GoOn(), 0U);
  EXPECT_FALSE(waiter_.is_posted());
  taken.Release();
  EXPECT_TRUE(waiter_.is_posted());
  EXPECT_FALSE(other_.is_posted()) << "one after the other";
  EXPECT_EQ(later->GoOn(), 0U) << "it is not the first";
  PeerBudget::Part newcomer;
  EXPECT_FALSE(budget_->Hold(10, PeerBudget::Kind::kMessages, newcomer));
  EXPECT_EQ(body_->GoOn(), message.size());
  EXPECT_EQ(body_->PopMessage().text(), message);
  EXPECT_TRUE(other_.is_posted());
  EXPECT_EQ(later->GoOn(), message.size());
  EXPECT_EQ(later->PopMessage().text(), message);
}

TEST_F(RequestBodyTest, LetsTheNextGoOnWhenOneThatWaitsIsGone) {
  PeerBudget::Part taken;
  ASSERT_TRUE(budget_->Hold(kBudget, PeerBudget::Kind::kMessages, taken));
  const auto later = NewBody(other_);
  for (RequestBody* const each : {body_.get(), later.get()}) {
    each->Want();
    Add(*each, MessagePrefix(10'000));
  }
  taken.Release();
  body_.reset();
  EXPECT_TRUE(other_.is_posted());
  later->GoOn();
  EXPECT_FALSE(later->is_waiting());
  EXPECT_FALSE(budget_->is_awaited());
}

TEST_F(RequestBodyTest, IsRefusedWhenWhatArrivesWhileItWaitsIsTooMuch) {
  PeerBudget::Part taken;
  ASSERT_TRUE(budget_->Hold(kBudget, PeerBudget::Kind::kMessages, taken));
  body_->Want();
  Add(*body_, MessagePrefix(kMessageBytesMax));
  std::size_t kept = 0;
  while (body_->problem() == RequestBody::Problem::kNone && kept < 2 * kBudget) {
    Add(*body_, std::string(65'536, 'x'));
    kept += 65'536;
  }
  EXPECT_EQ(body_->problem(), RequestBody::Problem::kNoSpace);
  EXPECT_EQ(kept, kBudget / 2 + 65'536);
}

TEST_F(RequestBodyTest, CountsNothingOfSmallMessages) {
  PeerBudget::Part taken;
  ASSERT_TRUE(budget_->Hold(kBudget, PeerBudget::Kind::kMessages, taken));
  body_->Want();
  Add(*body_, Framed(std::string(RequestBody::kUncountedBytes, 'x')));
  EXPECT_TRUE(body_->is_whole());
}

}  // namespace
}  // namespace simile::net
