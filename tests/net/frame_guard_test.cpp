#include "net/frame_guard.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
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

constexpr std::uint64_t kBudget = 1U << 20;
constexpr std::uint32_t kLargest = 512U << 10;

std::span<std::uint8_t> BytesOf(std::string& text) {
  return {reinterpret_cast<std::uint8_t*>(text.data()), text.size()};
}
std::span<const std::uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

class FrameGuardTest : public testing::Test {
 protected:
  FrameGuardTest() { Receive(kHttp2Preface + Settings()); }

  // What gRPC would see.
  std::string Receive(std::string bytes, Violation expected = Violation::kNone) {
    const Violation violation = guard_->Received(BytesOf(bytes));
    EXPECT_EQ(violation, expected) << TextOf(violation);
    return bytes;
  }
  void Send(const std::string& bytes, Violation expected = Violation::kNone) {
    EXPECT_EQ(guard_->Sent(BytesOf(bytes)), expected);
  }
  void Begin(std::uint32_t stream) {
    Receive(Frame(FrameType::kHeaders, kEndHeaders, stream, CallHeaders("/a/b")));
  }
  std::string Data(std::uint32_t stream, const std::string& payload,
                   Violation expected = Violation::kNone) {
    return Receive(Frame(FrameType::kData, 0, stream, payload), expected);
  }
  // How often a peer may send the bytes, first `allowed` times and then as often again as it may a
  // second later. The connection is cut for the violation after that.
  int CountTaken(const std::string& bytes, Violation expected, int allowed = 0) {
    PeerBudget budget(kBudget, clock_);
    FrameGuard guard(options_, std::shared_ptr<PeerBudget>(&budget, [](PeerBudget*) {}), clock_);
    std::string begin = kHttp2Preface + Frame(FrameType::kHeaders, 0, 1, "x");
    EXPECT_EQ(guard.Received(BytesOf(begin)), Violation::kNone);
    for (int count = 0;; ++count) {
      if (allowed > 0 && count == allowed) clock_.Advance(std::chrono::seconds(1));
      std::string copy = bytes;
      const Violation violation = guard.Received(BytesOf(copy));
      if (violation == Violation::kNone && count < 1'000'000) continue;
      EXPECT_EQ(violation, expected);
      return count;
    }
  }

  const FrameGuard::Options options_{
      .receive_bytes_max = kLargest, .metadata_bytes_max = 8U << 10, .streams_max = 100};
  engine::FakeClock clock_;
  const std::shared_ptr<PeerBudget> budget_ = std::make_shared<PeerBudget>(kBudget, clock_);
  std::unique_ptr<FrameGuard> guard_ = std::make_unique<FrameGuard>(options_, budget_, clock_);
};

TEST_F(FrameGuardTest, CutsWhatIsNoPrefaceAtTheFirstWrongByte) {
  for (const std::string& hello : {std::string("GET / HTTP/1.1\r\n"), std::string("\x16\x03\x01"),
                                   std::string("PRI * HTTP/2.0\r\n\r\nXX")}) {
    FrameGuard guard(options_, budget_, clock_);
    std::string bytes = hello;
    EXPECT_EQ(guard.Received(BytesOf(bytes)), Violation::kNotHttp2) << hello;
  }
  FrameGuard guard(options_, budget_, clock_);
  for (const char c : kHttp2Preface) {
    std::string byte(1, c);
    EXPECT_EQ(guard.Received(BytesOf(byte)), Violation::kNone);
  }
}

TEST_F(FrameGuardTest, LeavesACallAsItIs) {
  Begin(1);
  const std::string body = Frame(FrameType::kData, kEndStream, 1, MessagePrefix(5) + "hello");
  EXPECT_EQ(Receive(body), body);
  EXPECT_EQ(guard_->open_count(), 1U);
  Send(Frame(FrameType::kHeaders, kEndHeaders | kEndStream, 1, "trailers"));
  EXPECT_EQ(guard_->open_count(), 0U);
  EXPECT_EQ(budget_->held(), 0U);
}

TEST_F(FrameGuardTest, CutsResetsThatComeTooOften) {
  std::uint32_t stream = 1;
  int resets = 0;
  for (Violation violation = Violation::kNone; violation == Violation::kNone; stream += 2) {
    std::string bytes = Frame(FrameType::kHeaders, kEndHeaders, stream, CallHeaders("/a/b")) +
                        Frame(FrameType::kRstStream, 0, stream, BigEndian(8, 4));
    violation = guard_->Received(BytesOf(bytes));
    if (violation == Violation::kNone) ++resets;
    ASSERT_TRUE(violation == Violation::kNone || violation == Violation::kResets);
  }
  EXPECT_EQ(resets, 2'000);
  // Another connection of the same peer has no more of them, until time has passed.
  FrameGuard other(options_, budget_, clock_);
  std::string bytes = kHttp2Preface + Frame(FrameType::kRstStream, 0, 1, BigEndian(8, 4));
  EXPECT_EQ(other.Received(BytesOf(bytes)), Violation::kResets);
  clock_.Advance(std::chrono::seconds(1));
  FrameGuard third(options_, budget_, clock_);
  bytes = kHttp2Preface;
  for (int i = 0; i < 1'000; ++i) bytes += Frame(FrameType::kRstStream, 0, 1, BigEndian(8, 4));
  EXPECT_EQ(third.Received(BytesOf(bytes)), Violation::kNone);
}

TEST_F(FrameGuardTest, LetsAnsweredCallsPayForResets) {
  for (std::uint32_t stream = 1; stream < 40'001; stream += 4) {
    Begin(stream);
    Send(Frame(FrameType::kHeaders, kEndHeaders | kEndStream, stream, "trailers"));
    Begin(stream + 2);
    Receive(Frame(FrameType::kRstStream, 0, stream + 2, BigEndian(8, 4)));
  }
}

TEST_F(FrameGuardTest, CountsResetsThatThePeerProvokes) {
  Violation violation = Violation::kNone;
  int resets = 0;
  for (std::uint32_t stream = 1; violation == Violation::kNone; stream += 2) {
    Begin(stream);
    violation = guard_->Sent(BytesOf(Frame(FrameType::kRstStream, 0, stream, BigEndian(1, 4))));
    ++resets;
  }
  EXPECT_EQ(violation, Violation::kResets);
  EXPECT_EQ(resets, 2'001);
}

TEST_F(FrameGuardTest, DoesNotCountTheResetAfterAnAnswer) {
  for (std::uint32_t stream = 1; stream < 10'001; stream += 2) {
    Begin(stream);
    Send(Frame(FrameType::kHeaders, kEndHeaders | kEndStream, stream, "trailers") +
         Frame(FrameType::kRstStream, 0, stream, BigEndian(0, 4)));
  }
  EXPECT_EQ(guard_->open_count(), 0U);
}

TEST_F(FrameGuardTest, CutsMetadataWithoutEnd) {
  const std::string more = Frame(FrameType::kContinuation, 0, 1, std::string(16'000, 'x'));
  EXPECT_EQ(CountTaken(more, Violation::kHeaderBytes), 3);
}

TEST_F(FrameGuardTest, CutsEmptyContinuationsWithoutEnd) {
  EXPECT_LT(CountTaken(Frame(FrameType::kContinuation, 0, 1), Violation::kHeaderBytes), 1'000);
}

TEST_F(FrameGuardTest, TakesMetadataInManyFramesThatEnds) {
  for (std::uint32_t stream = 1; stream < 201; stream += 2) {
    Receive(Frame(FrameType::kHeaders, 0, stream, std::string(8'000, 'x')));
    Receive(Frame(FrameType::kContinuation, kEndHeaders, stream, std::string(8'000, 'x')));
  }
}

TEST_F(FrameGuardTest, CutsCallsThatAreBegunWithoutEnd) {
  std::uint32_t stream = 1;
  Violation violation = Violation::kNone;
  for (; violation == Violation::kNone && stream < 100'000; stream += 2) {
    std::string bytes = Frame(FrameType::kHeaders, kEndHeaders, stream, CallHeaders("/a/b"));
    violation = guard_->Received(BytesOf(bytes));
  }
  EXPECT_EQ(violation, Violation::kStreams);
}

TEST_F(FrameGuardTest, CutsFloodsOfSmallFrames) {
  struct Flood {
    std::string frame;
    Violation violation;
    int burst;
    int per_second;
  };
  const std::vector<Flood> floods = {
      {Frame(FrameType::kPing, 0, 0, "12345678"), Violation::kPings, 1'000, 100},
      {Frame(FrameType::kSettings, 0, 0), Violation::kSettings, 200, 50},
      {Frame(FrameType::kPriority, 0, 1, "12345"), Violation::kPriorities, 1'000, 100},
      {Frame(FrameType::kWindowUpdate, 0, 0, BigEndian(1, 4)), Violation::kWindowUpdates, 10'000,
       1'000},
      {Frame(FrameType::kData, 0, 1), Violation::kEmptyData, 1'000, 100},
      {Frame(std::uint8_t{0x42}, 0, 0, "?"), Violation::kUnknownFrames, 100, 10}};
  for (const Flood& flood : floods) {
    EXPECT_EQ(CountTaken(flood.frame, flood.violation), flood.burst) << TextOf(flood.violation);
    EXPECT_EQ(CountTaken(flood.frame, flood.violation, flood.burst), flood.burst + flood.per_second)
        << TextOf(flood.violation);
  }
}

TEST_F(FrameGuardTest, CountsDataThatIsOnlyPaddingAsEmpty) {
  const std::string padding = Frame(FrameType::kData, kPadded, 1,
                                    "\x03"
                                    "xyz");
  EXPECT_EQ(CountTaken(padding, Violation::kEmptyData), 1'000);
}

TEST_F(FrameGuardTest, LetsRepliesPayForPings) {
  for (int i = 0; i < 5'000; ++i) {
    Receive(Frame(FrameType::kPing, 0, 0, "12345678") +
            Frame(FrameType::kWindowUpdate, 0, 0, BigEndian(9, 4)));
    Send(Frame(FrameType::kData, 0, 1, "reply"));
  }
}

class UnfinishedBodiesTest : public FrameGuardTest {
 protected:
  static constexpr std::uint32_t kDeclared = 300U << 10;
  // Of a budget of 1 MiB, seven eighths of which may be declared, two fit.
  void FillBudget() {
    for (const std::uint32_t stream : {1U, 3U}) {
      Begin(stream);
      Data(stream, MessagePrefix(kDeclared) + "first bytes");
    }
    EXPECT_GE(budget_->held(), 2U * kDeclared);
  }
  static std::optional<RefusedBody> MarkIn(const std::string& frame) {
    const std::string message = frame.substr(9 + 5, kRefusalMarkBytes);
    EXPECT_EQ(frame.substr(9, 5), MessagePrefix(kRefusalMarkBytes));
    return ReadMark(BytesOf(message));
  }
};

TEST_F(UnfinishedBodiesTest, PutsAMarkInPlaceOfWhatTheBudgetDoesNotHold) {
  FillBudget();
  Begin(5);
  const std::string seen = Data(5, MessagePrefix(kDeclared) + std::string(100, 'x'));
  EXPECT_EQ(seen.size(), 9U + 5U + 100U);
  const auto mark = MarkIn(seen);
  ASSERT_TRUE(mark.has_value());
  EXPECT_EQ(mark->why, RefusedBody::Why::kBudgetFull);
  EXPECT_EQ(mark->declared_bytes, kDeclared);
  EXPECT_EQ(seen.substr(9 + 5 + kRefusalMarkBytes), std::string(100 - kRefusalMarkBytes, '\0'));
  EXPECT_EQ(guard_->ConsumeRefusedCount(), 1U);
  // What follows of it is worth nothing, and counts until the stream ends.
  EXPECT_EQ(Data(5, std::string(50, 'x')), Frame(FrameType::kData, 0, 5, std::string(50, '\0')));
  Send(Frame(FrameType::kRstStream, 0, 1, BigEndian(8, 4)));
  Send(Frame(FrameType::kHeaders, kEndStream, 5, "refused"));
  Receive(Frame(FrameType::kRstStream, 0, 3, BigEndian(8, 4)));
  EXPECT_EQ(budget_->held(), 0U);
}

TEST_F(UnfinishedBodiesTest, PutsAMarkInPlaceOfWhatIsLargerThanAnyRequest) {
  Begin(1);
  const auto mark = MarkIn(Data(1, MessagePrefix(kLargest + 1) + std::string(100, 'x')));
  ASSERT_TRUE(mark.has_value());
  EXPECT_EQ(mark->why, RefusedBody::Why::kTooLarge);
  EXPECT_EQ(mark->declared_bytes, kLargest + 1);
}

TEST_F(UnfinishedBodiesTest, WritesTheMarkInPieces) {
  Begin(1);
  std::string frame = Frame(FrameType::kData, kPadded, 1,
                            "\x04" + MessagePrefix(~0U) + std::string(60, 'x') + "pads");
  std::string seen = Receive(frame.substr(0, 9 + 1 + 5 + 3));
  for (const char c : frame.substr(9 + 1 + 5 + 3)) seen += Receive(std::string(1, c));
  const std::string message = seen.substr(9 + 1 + 5, kRefusalMarkBytes);
  EXPECT_TRUE(ReadMark(BytesOf(message)).has_value());
  EXPECT_EQ(seen.substr(seen.size() - 4), "pads");
}

TEST_F(UnfinishedBodiesTest, CutsWhatHasNoSpaceForAMark) {
  FillBudget();
  Begin(5);
  Data(5, MessagePrefix(kDeclared) + std::string(kRefusalMarkBytes - 1, 'x'),
       Violation::kUnfinishedBytes);
}

TEST_F(UnfinishedBodiesTest, CutsWhatHasAPrefixThatWasSeenInPart) {
  FillBudget();
  Begin(5);
  const std::string prefix = MessagePrefix(kDeclared);
  Data(5, prefix.substr(0, 2));
  Data(5, prefix.substr(2) + std::string(100, 'x'), Violation::kUnfinishedBytes);
}

TEST_F(UnfinishedBodiesTest, CutsSmallOnesThatAreTooManyTogether) {
  const std::string part = MessagePrefix(60'000) + std::string(10'000, 'x');
  Violation violation = Violation::kNone;
  std::uint32_t stream = 1;
  for (; violation == Violation::kNone; stream += 2) {
    Begin(stream);
    std::string bytes = Frame(FrameType::kData, 0, stream, part);
    violation = guard_->Received(BytesOf(bytes));
    ASSERT_LT(stream, 1'000U);
  }
  EXPECT_EQ(violation, Violation::kUnfinishedBytes);
  EXPECT_LE(budget_->held(), kBudget);
  guard_.reset();
  EXPECT_EQ(budget_->held(), 0U);
}

TEST_F(UnfinishedBodiesTest, HoldsNothingOfWhatIsWhole) {
  Begin(1);
  for (int message = 0; message < 10; ++message) {
    const std::string body = MessagePrefix(100'000) + std::string(100'000, 'x');
    for (std::size_t at = 0; at < body.size(); at += 16'384) Data(1, body.substr(at, 16'384));
    EXPECT_EQ(budget_->held(), 0U);
  }
}

TEST_F(UnfinishedBodiesTest, SharesTheBudgetWithThePeersOtherConnections) {
  FillBudget();
  FrameGuard other(options_, budget_, clock_);
  std::string bytes =
      kHttp2Preface + Frame(FrameType::kHeaders, kEndHeaders, 1, CallHeaders("/a/b")) +
      Frame(FrameType::kData, 0, 1, MessagePrefix(kDeclared) + std::string(99, 'x'));
  EXPECT_EQ(other.Received(BytesOf(bytes)), Violation::kNone);
  EXPECT_EQ(other.ConsumeRefusedCount(), 1U);
}

// However the bytes are cut into pieces, the guard does the same, as long as no prefix is cut.
TEST_F(UnfinishedBodiesTest, DoesTheSameForAnyPieces) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::string sent = kHttp2Preface + Settings();
  for (std::uint32_t stream = 1; stream < 41; stream += 2) {
    sent += Frame(FrameType::kHeaders, kEndHeaders, stream, CallHeaders("/a/b"));
    const auto bytes = static_cast<std::uint32_t>(random() % 3'000);
    sent += Frame(FrameType::kData, 0, stream, MessagePrefix(bytes) + std::string(bytes, 'x'));
    if (random() % 2 == 0) sent += Frame(FrameType::kRstStream, 0, stream, BigEndian(8, 4));
  }
  for (int round = 0; round < 100; ++round) {
    const auto budget = std::make_shared<PeerBudget>(kBudget, clock_);
    FrameGuard guard(options_, budget, clock_);
    for (std::size_t at = 0; at < sent.size();) {
      std::string piece = sent.substr(at, 1 + random() % 200);
      const std::string before = piece;
      ASSERT_EQ(guard.Received(BytesOf(piece)), Violation::kNone);
      ASSERT_EQ(piece, before);
      at += piece.size();
    }
    FrameGuard whole(options_, budget, clock_);
    std::string copy = sent;
    ASSERT_EQ(whole.Received(BytesOf(copy)), Violation::kNone);
    ASSERT_EQ(guard.open_count(), whole.open_count());
    ASSERT_EQ(budget->held(), 0U);
  }
}

TEST(PeerBudgetsTest, KeepsTheBudgetOfAPeerThatComesBack) {
  engine::FakeClock clock;
  PeerBudgets budgets(kBudget, clock);
  const auto peer = [](std::uint32_t number) {
    sockaddr_storage address{};
    auto& v4 = reinterpret_cast<sockaddr_in&>(address);
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(0x0a000000 + number);
    return PeerKey::Of(address, 64);
  };
  EXPECT_TRUE(budgets.Of(peer(0))->CountReset());
  while (budgets.Of(peer(0))->CountReset()) {
  }
  for (std::uint32_t number = 1; number < 5'000; ++number) budgets.Of(peer(number));
  EXPECT_FALSE(budgets.Of(peer(0))->CountReset());
  EXPECT_LT(budgets.size(), 3'000U);
  clock.Advance(std::chrono::seconds(10));
  for (std::uint32_t number = 1; number < 5'000; ++number) budgets.Of(peer(number));
  EXPECT_TRUE(budgets.Of(peer(0))->CountReset());
}

TEST(RefusedBodyTest, KnowsOnlyItsOwnMarks) {
  RefusalMark mark = MarkOf({RefusedBody::Why::kBudgetFull, 123'456});
  ASSERT_TRUE(ReadMark(mark).has_value());
  EXPECT_EQ(ReadMark(mark)->declared_bytes, 123'456U);
  for (std::size_t i = 0; i < 16; ++i) {
    mark.at(i) ^= 1;
    EXPECT_FALSE(ReadMark(mark).has_value());
    mark.at(i) ^= 1;
  }
  EXPECT_FALSE(ReadMark(std::span(mark).first(20)).has_value());
}

}  // namespace
}  // namespace simile::net
