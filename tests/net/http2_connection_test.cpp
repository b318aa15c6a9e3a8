// One connection, frame by frame: what RFC 9113 asks of a server (the sections of h2spec), what
// gRPC asks of its calls, and what bounds a peer.
#include "net/http2_connection.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/http2_frames.h"
#include "net/served_connection.h"

namespace simile::net {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::uint8_t kAck = 1;
constexpr char kSpec[] = "/echo.Echo/Spec";
constexpr char kUnary[] = "/echo.Echo/Unary";

std::string Headers(std::uint32_t stream, const char* path = kSpec,
                    std::uint8_t flags = kEndHeaders, const std::string& more = {}) {
  return Frame(FrameType::kHeaders, flags, stream, CallHeaders(path) + more);
}
std::string Data(std::uint32_t stream, const std::string& payload, std::uint8_t flags = 0) {
  return Frame(FrameType::kData, flags, stream, payload);
}
std::string Message(const std::string& bytes) {
  return MessagePrefix(static_cast<std::uint32_t>(bytes.size())) + bytes;
}

// The frames that a server sent.
class Answer : public FrameCollector {
 public:
  // The error codes of GOAWAY, and of the resets of a stream; -1 for none.
  std::int64_t goaway() const {
    constexpr auto kGoaway = static_cast<FrameType>(7);
    std::int64_t code = -1;
    for (const ReceivedFrame& frame : frames()) {
      if (frame.header.type == kGoaway) code = ParseBigEndian(frame.payload.substr(4, 4));
    }
    return code;
  }
  std::int64_t FindReset(std::uint32_t stream) const {
    for (const ReceivedFrame& frame : frames()) {
      if (frame.Is(FrameType::kRstStream, stream)) return ParseBigEndian(frame.payload);
    }
    return -1;
  }
  bool HasEnded(std::uint32_t stream) const {
    return std::ranges::any_of(
        frames(), [stream](const ReceivedFrame& frame) { return frame.EndsStream(stream); });
  }
  std::string GoawayText() const {
    for (const ReceivedFrame& frame : frames()) {
      if (frame.header.type == static_cast<FrameType>(7)) return frame.payload.substr(8);
    }
    return {};
  }
  int CountFrames(FrameType type, std::uint8_t flags = 0) const {
    int count = 0;
    for (const ReceivedFrame& frame : frames()) {
      count += frame.header.type == type && (frame.header.flags & flags) == flags ? 1 : 0;
    }
    return count;
  }
};

class Http2ConnectionTest : public testing::Test {
 protected:
  // Sends the bytes; the frames that came back so far are in answer_.
  void Send(const std::string& bytes) { answer_.Add(server().Send(bytes)); }
  void Open() { Send(kHttp2Preface + Settings() + Frame(FrameType::kSettings, kAck, 0)); }
  void Advance(Clock::Duration duration) { answer_.Add(server().Advance(duration)); }
  bool AnswersPing() {
    const int before = answer_.CountFrames(FrameType::kPing, kAck);
    Send(Frame(FrameType::kPing, 0, 0, "12345678"));
    return answer_.CountFrames(FrameType::kPing, kAck) == before + 1;
  }
  ServedConnection& server() {
    if (server_ == nullptr) server_ = std::make_unique<ServedConnection>(limits_);
    return *server_;
  }

  Limits limits_;  // of the connection, until it begins
  Answer answer_;

 private:
  std::unique_ptr<ServedConnection> server_;
};

// What the server does with a broken connection or stream.
struct SpecCase {
  std::string name;  // the section of RFC 9113, and what is sent
  std::string bytes;
  std::int64_t goaway = -1;  // the code that it may have; -1: the connection goes on
  std::int64_t reset = -1;   // of stream 1
};
void PrintTo(const SpecCase& spec, std::ostream* out) { *out << spec.name; }

constexpr std::int64_t kProtocolError = 1;
constexpr std::int64_t kFlowControlError = 3;
constexpr std::int64_t kStreamClosed = 5;
constexpr std::int64_t kFrameSizeError = 6;
constexpr std::int64_t kRefusedStream = 7;
constexpr std::int64_t kCompressionError = 9;

std::vector<SpecCase> SpecCases() {
  const std::string begun = Headers(1);
  const std::string ended = Headers(1, kSpec, kEndHeaders | kEndStream);
  const std::string large = BigEndian(0x7fff'ffff, 4);
  std::string unknown_setting = Frame(FrameType::kSettings, 0, 0, BigEndian(0xff, 2) + large);
  return {
      {"UnknownFrame_4_1", Frame(std::uint8_t{0x16}, 0, 0, "any"), -1, -1},
      {"LongFrame_4_2", begun + Data(1, std::string(16'385, 'x')), kFrameSizeError, -1},
      {"LongHeaders_4_2", Frame(FrameType::kHeaders, kEndHeaders, 1, std::string(16'385, 'x')),
       kFrameSizeError, -1},
      {"BrokenHeaders_4_3", Frame(FrameType::kHeaders, kEndHeaders, 1, "\x40"), kCompressionError,
       -1},
      {"FrameAmidHeaders_4_3",
       Frame(FrameType::kHeaders, 0, 1, CallHeaders(kSpec)) +
           Frame(FrameType::kPing, 0, 0, "12345678"),
       kProtocolError, -1},
      {"DataOnIdle_5_1", Data(1, "x"), kProtocolError, -1},
      {"WindowUpdateOnIdle_5_1", Frame(FrameType::kWindowUpdate, 0, 1, BigEndian(1, 4)),
       kProtocolError, -1},
      {"ContinuationOnIdle_5_1", Frame(FrameType::kContinuation, kEndHeaders, 1, "x"),
       kProtocolError, -1},
      {"DataAfterEnd_5_1", ended + Data(1, "x"), kStreamClosed, -1},
      {"HeadersAfterEnd_5_1", ended + Headers(1), kStreamClosed, -1},
      {"EvenStream_5_1_1", Headers(2), kProtocolError, -1},
      {"DependsOnItself_5_3_1", Frame(FrameType::kPriority, 0, 1, BigEndian(1, 4) + "x"),
       kProtocolError, -1},
      {"DataOnStreamZero_6_1", Data(0, "x"), kProtocolError, -1},
      {"PaddingIsTooLong_6_1", begun + Data(1, "\x09short", kPadded), kProtocolError, -1},
      {"HeadersOnStreamZero_6_2", Headers(0), kProtocolError, -1},
      {"PriorityOnStreamZero_6_3", Frame(FrameType::kPriority, 0, 0, "12345"), kProtocolError, -1},
      {"ShortPriority_6_3", begun + Frame(FrameType::kPriority, 0, 1, "1234"), kFrameSizeError, -1},
      {"ResetOnStreamZero_6_4", Frame(FrameType::kRstStream, 0, 0, BigEndian(8, 4)), kProtocolError,
       -1},
      {"ShortReset_6_4", begun + Frame(FrameType::kRstStream, 0, 1, "123"), kFrameSizeError, -1},
      {"SettingsAckWithPayload_6_5", Frame(FrameType::kSettings, kAck, 0, "x"), kFrameSizeError,
       -1},
      {"SettingsOnAStream_6_5", Frame(FrameType::kSettings, 0, 1), kProtocolError, -1},
      {"ShortSettings_6_5", Frame(FrameType::kSettings, 0, 0, "123"), kFrameSizeError, -1},
      {"EnablePushIsTwo_6_5_2",
       Frame(FrameType::kSettings, 0, 0, BigEndian(2, 2) + BigEndian(2, 4)), kProtocolError, -1},
      {"WindowIsTooLarge_6_5_2",
       Frame(FrameType::kSettings, 0, 0, BigEndian(4, 2) + BigEndian(0x8000'0000, 4)),
       kFlowControlError, -1},
      {"FrameSizeIsTooSmall_6_5_2",
       Frame(FrameType::kSettings, 0, 0, BigEndian(5, 2) + BigEndian(16'383, 4)), kProtocolError,
       -1},
      {"UnknownSetting_6_5_2", unknown_setting, -1, -1},
      {"PingOnAStream_6_7", Frame(FrameType::kPing, 0, 1, "12345678"), kProtocolError, -1},
      {"ShortPing_6_7", Frame(FrameType::kPing, 0, 0, "1234"), kFrameSizeError, -1},
      {"GoawayOnAStream_6_8", Frame(std::uint8_t{7}, 0, 1, "12345678"), kProtocolError, -1},
      {"WindowUpdateOfZero_6_9", Frame(FrameType::kWindowUpdate, 0, 0, BigEndian(0, 4)),
       kProtocolError, -1},
      {"WindowUpdateOfZeroOnAStream_6_9",
       begun + Frame(FrameType::kWindowUpdate, 0, 1, BigEndian(0, 4)), kProtocolError, -1},
      {"ShortWindowUpdate_6_9", Frame(FrameType::kWindowUpdate, 0, 0, "123"), kFrameSizeError, -1},
      {"WindowOverflows_6_9_1", Frame(FrameType::kWindowUpdate, 0, 0, large), kFlowControlError,
       -1},
      {"WindowOfAStreamOverflows_6_9_1", begun + Frame(FrameType::kWindowUpdate, 0, 1, large), -1,
       kFlowControlError},
      {"ContinuationAfterEnd_6_10",
       begun + Frame(FrameType::kContinuation, kEndHeaders, 1, Literal("a", "b")), kProtocolError,
       -1},
      {"TrailersWithoutEnd_8_1", begun + Headers(1), kProtocolError, kProtocolError},
      {"UpperCaseName_8_2",
       Headers(1, kSpec, kEndHeaders | kEndStream, Literal("X-Upper", "value")), -1,
       kProtocolError},
      {"ConnectionHeader_8_2_2",
       Headers(1, kSpec, kEndHeaders | kEndStream, Literal("connection", "keep-alive")), -1,
       kProtocolError},
      {"OtherTe_8_2_2",
       Frame(FrameType::kHeaders, kEndHeaders | kEndStream, 1,
             "\x83\x86" + Literal(":path", kSpec) + Literal("te", "gzip")),
       -1, kProtocolError},
      {"UnknownPseudoHeader_8_3",
       Frame(FrameType::kHeaders, kEndHeaders | kEndStream, 1,
             Literal(":test", "x") + CallHeaders(kSpec)),
       -1, kProtocolError},
      {"PseudoHeaderAfterOthers_8_3",
       Frame(FrameType::kHeaders, kEndHeaders | kEndStream, 1,
             Literal("a", "b") + CallHeaders(kSpec)),
       -1, kProtocolError},
      {"NoMethod_8_3_1",
       Frame(FrameType::kHeaders, kEndHeaders | kEndStream, 1,
             "\x86" + Literal(":path", kSpec) + Literal(":authority", "x")),
       -1, kProtocolError},
      {"EmptyPath_8_3_1",
       Frame(FrameType::kHeaders, kEndHeaders | kEndStream, 1,
             "\x83\x86" + Literal(":path", "") + Literal(":authority", "x")),
       -1, kProtocolError},
      {"TwoPaths_8_3_1",
       Frame(FrameType::kHeaders, kEndHeaders | kEndStream, 1,
             "\x83\x86" + Literal(":path", kSpec) + Literal(":path", kSpec)),
       -1, kProtocolError},
      {"PushPromise_8_4", Frame(std::uint8_t{5}, kEndHeaders, 1, BigEndian(2, 4) + "\x83"),
       kProtocolError, -1},
  };
}

class SpecTest : public Http2ConnectionTest, public testing::WithParamInterface<SpecCase> {};

TEST_P(SpecTest, IsAnsweredAsTheRfcSays) {
  Open();
  Send(GetParam().bytes);
  if (GetParam().reset >= 0 && answer_.goaway() < 0) {
    EXPECT_EQ(answer_.FindReset(1), GetParam().reset);
    EXPECT_TRUE(AnswersPing());
  } else if (GetParam().goaway >= 0) {
    EXPECT_EQ(answer_.goaway(), GetParam().goaway);
    EXPECT_TRUE(server().is_closed());
  } else {
    EXPECT_EQ(answer_.goaway(), -1);
    EXPECT_TRUE(AnswersPing());
  }
  if (server().is_closed()) {
    EXPECT_EQ(server().stream().begun, server().stream().ended);
  }
}

INSTANTIATE_TEST_SUITE_P(Rfc9113, SpecTest, testing::ValuesIn(SpecCases()),
                         [](const auto& spec) { return spec.param.name; });

TEST_F(Http2ConnectionTest, AnswersAUnaryCall) {
  Open();
  Send(Headers(1, kUnary) + Data(1, Message("hello"), kEndStream));
  EXPECT_EQ(answer_.JoinData(1), Message("hello"));
  EXPECT_TRUE(answer_.HasEnded(1));
  EXPECT_EQ(server().unary().ended, 1);
  EXPECT_TRUE(AnswersPing());
}

TEST_F(Http2ConnectionTest, TakesAConnectionCutAtEveryByte) {
  const std::string all = kHttp2Preface + Settings() + Frame(FrameType::kSettings, kAck, 0) +
                          Headers(1) + Data(1, Message("first")) +
                          Data(1, Message(""), kEndStream) + Headers(3, kUnary) +
                          Data(3, Message("second"), kEndStream);
  for (const char byte : all) Send({&byte, 1});
  EXPECT_EQ(answer_.JoinData(1), Message("first") + Message(""));
  EXPECT_EQ(answer_.JoinData(3), Message("second"));
}

TEST_F(Http2ConnectionTest, TakesMessagesInFramesOfAnySizeAndPadding) {
  std::mt19937 random(9);
  Open();
  std::string body;
  // Less than the first window of the peer, which gives back none.
  for (int i = 0; i < 40; ++i) body += Message(std::string(random() % 2'000, 'm'));
  Send(Headers(1));
  for (std::size_t at = 0; at < body.size();) {
    const std::string piece = body.substr(at, 1 + random() % 700);
    at += piece.size();
    const auto padding = static_cast<char>(random() % 20);
    Send(Data(1, padding + piece + std::string(static_cast<std::size_t>(padding), '\0'), kPadded));
  }
  Send(Data(1, "", kEndStream));
  EXPECT_TRUE(answer_.JoinData(1) == body);
  EXPECT_TRUE(answer_.HasEnded(1));
}

// As gRPC's clients do when a call ends before its headers are written.
TEST_F(Http2ConnectionTest, GoesOnAfterResetsOfCallsThatNeverCame) {
  Open();
  const auto reset = [](std::uint32_t stream) {
    return Frame(FrameType::kRstStream, 0, stream, BigEndian(8, 4));
  };
  const std::string all = Headers(1, kUnary) + reset(3) + Data(1, Message("one"), kEndStream) +
                          reset(5) + reset(7) + Headers(9, kUnary) +
                          Data(9, Message("nine"), kEndStream);
  Send(all);
  EXPECT_EQ(answer_.JoinData(1), Message("one"));
  EXPECT_EQ(answer_.JoinData(9), Message("nine"));
  EXPECT_TRUE(AnswersPing());
  for (const char byte : reset(11)) Send({&byte, 1});
  EXPECT_TRUE(AnswersPing());
}

TEST_F(Http2ConnectionTest, GoesOnAfterAResetBeforeTheFirstCall) {
  Open();
  Send(Frame(FrameType::kRstStream, 0, 1, BigEndian(8, 4)));
  Advance(std::chrono::milliseconds(150));
  Send(Headers(3, kUnary) + Data(3, Message("three"), kEndStream));
  EXPECT_EQ(answer_.JoinData(3), Message("three"));
  Advance(std::chrono::seconds(1));
  EXPECT_TRUE(AnswersPing());
}

TEST_F(Http2ConnectionTest, CutsAPeerThatResetsACallAndBeginsNone) {
  Open();
  Send(Frame(FrameType::kRstStream, 0, 1, BigEndian(8, 4)));
  EXPECT_FALSE(server().is_closed());
  Advance(std::chrono::milliseconds(250));
  EXPECT_EQ(answer_.goaway(), kProtocolError);
  EXPECT_TRUE(server().is_closed());
}

TEST_F(Http2ConnectionTest, RefusesACallOfAnotherNumberOfMessagesThanOne) {
  Open();
  Send(Headers(1, kUnary) + Data(1, Message("a") + Message("b"), kEndStream));
  Send(Headers(3, kUnary, kEndHeaders | kEndStream));
  Send(Headers(5, kUnary) + Data(5, Message("abc").substr(0, 6), kEndStream));
  for (const std::uint32_t stream : {1U, 3U, 5U}) {
    EXPECT_TRUE(answer_.HasEnded(stream)) << stream;
    EXPECT_EQ(answer_.JoinData(stream), "") << stream;
  }
  EXPECT_EQ(server().unary().begun, 0);
}

TEST_F(Http2ConnectionTest, TellsACallerThatItsRequestIsTooLargeWhileItIsStillSent) {
  Open();
  Send(Headers(1, kUnary) + Data(1, MessagePrefix(limits_.receive_bytes_max + 1) + "begin"));
  EXPECT_TRUE(answer_.HasEnded(1));
  EXPECT_EQ(server().unary().ended, 1);
  EXPECT_EQ(answer_.FindReset(1), -1) << "a proxy would drop the answer";
  Send(Data(1, std::string(1'000, 'r')));
  Advance(std::chrono::milliseconds(1'100));
  EXPECT_EQ(answer_.FindReset(1), 0) << "NO_ERROR: the rest need not be sent";
  EXPECT_TRUE(AnswersPing());
}

TEST_F(Http2ConnectionTest, EndsACallAtItsDeadlineAlsoWhenItsCallerReadsNothing) {
  Open();
  Send(Frame(FrameType::kSettings, 0, 0, BigEndian(4, 2) + BigEndian(0, 4)));  // no window
  Send(Headers(1, kUnary, kEndHeaders, Literal("grpc-timeout", "300m")) +
       Data(1, Message("hello"), kEndStream));
  Send(Headers(3, kSpec, kEndHeaders, Literal("grpc-timeout", "300m")));
  EXPECT_FALSE(answer_.HasEnded(1));
  Advance(300ms + 2 * EventLoop::kTimerStep);
  EXPECT_EQ(answer_.FindReset(1), 8) << "CANCEL";
  EXPECT_TRUE(answer_.HasEnded(3));
  EXPECT_EQ(server().unary().ended, 1);
  EXPECT_EQ(server().stream().ended, 1);
}

TEST_F(Http2ConnectionTest, RaisesTheWindowOfALargeMessageAndOfLaterCalls) {
  Open();
  const int updates = answer_.CountFrames(FrameType::kWindowUpdate);
  const int settings = answer_.CountFrames(FrameType::kSettings);
  Send(Headers(1, kUnary) + Data(1, MessagePrefix(10U << 20) + "begin"));
  EXPECT_EQ(answer_.CountFrames(FrameType::kWindowUpdate), updates + 1);
  EXPECT_EQ(answer_.CountFrames(FrameType::kSettings), settings + 1);
  Send(Headers(3, kUnary) + Data(3, MessagePrefix(1U << 20) + "begin"));
  EXPECT_EQ(answer_.CountFrames(FrameType::kWindowUpdate), updates + 1);
}

TEST_F(Http2ConnectionTest, AnswersWhatIsNoCallOfGrpcByHttp) {
  Open();
  const auto request = [](std::uint32_t stream, const std::string& method,
                          const std::string& content_type) {
    return Frame(FrameType::kHeaders, kEndHeaders | kEndStream, stream,
                 method + "\x86" + Literal(":path", kUnary) + Literal(":authority", "x") +
                     Literal("content-type", content_type));
  };
  Send(request(1, "\x82", "application/grpc"));  // GET
  Send(request(3, "\x83", "application/json"));
  Send(request(5, "\x83", "application/grpc-web"));
  for (const std::uint32_t stream : {1U, 3U, 5U}) EXPECT_TRUE(answer_.HasEnded(stream)) << stream;
  EXPECT_EQ(server().unary().begun, 0);
}

TEST_F(Http2ConnectionTest, PingsASilentPeerAndClosesWhenItDoesNotAnswer) {
  Open();
  Advance(limits_.keepalive_time);
  Advance(10ms);
  EXPECT_EQ(answer_.CountFrames(FrameType::kPing), 1);
  Advance(limits_.keepalive_timeout - 1s);
  EXPECT_FALSE(server().is_closed());
  Advance(2s);
  EXPECT_TRUE(server().is_closed());
}

TEST_F(Http2ConnectionTest, KeepsAPeerThatAnswersItsPings) {
  Open();
  for (int i = 0; i < 5; ++i) {
    Advance(limits_.keepalive_time + 10ms);
    Send(Frame(FrameType::kPing, kAck, 0, std::string(8, '\0')));
  }
  EXPECT_FALSE(server().is_closed());
  EXPECT_EQ(answer_.CountFrames(FrameType::kPing), 5);
}

TEST_F(Http2ConnectionTest, ClosesAnIdleConnectionWithAWord) {
  limits_.connection_idle_max = 5s;
  Open();
  Advance(6s);
  EXPECT_EQ(answer_.goaway(), 0) << "that calls are still taken";
  Send(Frame(FrameType::kPing, kAck, 0, "draining"));
  EXPECT_TRUE(server().is_closed());
}

TEST_F(Http2ConnectionTest, TakesCallsUntilThePeerKnowsOfTheDrain) {
  Open();
  Send(Headers(1));
  server().connection()->BeginDrain();
  answer_.Add(server().Turn());
  EXPECT_EQ(answer_.goaway(), 0);
  Send(Headers(3, kUnary) + Data(3, Message("late"), kEndStream));
  EXPECT_EQ(answer_.JoinData(3), Message("late"));
  // The answer to another ping says nothing. In one piece: the calls that follow are too late.
  Send(Frame(FrameType::kPing, kAck, 0, std::string(8, '\0')) +
       Frame(FrameType::kPing, kAck, 0, "draining") + Headers(7, kUnary) +
       Data(7, Message("too late"), kEndStream));
  EXPECT_EQ(answer_.JoinData(7), "");
  EXPECT_EQ(server().unary().begun, 1);
  Send(Headers(9, kUnary) + Data(9, Message("too late"), kEndStream));
  EXPECT_EQ(answer_.JoinData(9), "") << "its client sends it elsewhere";
  EXPECT_FALSE(server().is_closed());
  Send(Data(1, Message("last"), kEndStream));
  EXPECT_EQ(answer_.JoinData(1), Message("last"));
  EXPECT_TRUE(server().is_closed());
}

TEST_F(Http2ConnectionTest, ClosesAConnectionThatDoesNotSpeak) {
  Send(kHttp2Preface.substr(0, 10));
  Advance(limits_.handshake_timeout + 10ms);
  EXPECT_TRUE(server().is_closed());
}

// Floods end with a reason.
struct FloodCase {
  std::string name;
  std::string before;
  std::string each;
  std::string text;  // of GOAWAY
  int at_once = 100;
};
void PrintTo(const FloodCase& flood, std::ostream* out) { *out << flood.name; }

class FloodTest : public Http2ConnectionTest, public testing::WithParamInterface<FloodCase> {};

TEST_P(FloodTest, IsCutAndToldWhy) {
  Open();
  Send(GetParam().before);
  for (int i = 0; i < 200 && !server().is_closed(); ++i) {
    std::string bytes;
    for (int j = 0; j < GetParam().at_once; ++j) bytes += GetParam().each;
    Send(bytes);
  }
  EXPECT_TRUE(server().is_closed());
  EXPECT_THAT(answer_.GoawayText(), HasSubstr(GetParam().text));
  EXPECT_THAT(server().lines(), HasSubstr("connection cut"));
  EXPECT_EQ(server().stream().begun, server().stream().ended);
}

INSTANTIATE_TEST_SUITE_P(
    All, FloodTest,
    testing::ValuesIn(std::vector<FloodCase>{
        {"Pings", "", Frame(FrameType::kPing, 0, 0, "12345678"), "too_many_pings"},
        {"PingsAtOnce", "", Frame(FrameType::kPing, 0, 0, "12345678"), "too_many_pings", 2'000},
        {"Settings", "", Settings(), "SETTINGS"},
        {"Priorities", "", Frame(FrameType::kPriority, 0, 3, std::string(5, '\0')), "PRIORITY"},
        {"WindowUpdates", "", Frame(FrameType::kWindowUpdate, 0, 0, BigEndian(1, 4)),
         "WINDOW_UPDATE"},
        {"EmptyData", Headers(1), Data(1, ""), "empty DATA"},
        {"Padding", Headers(1), Data(1, std::string("\x03pad", 4), kPadded), "empty DATA"},
        {"UnknownFrames", "", Frame(std::uint8_t{0xee}, 0, 0, "?"), "other types"},
    }),
    [](const auto& flood) { return flood.param.name; });

TEST_F(Http2ConnectionTest, CutsAPeerThatBeginsAndResetsCalls) {
  Open();
  for (std::uint32_t stream = 1; stream < 20'000 && !server().is_closed(); stream += 2) {
    Send(Headers(stream) + Frame(FrameType::kRstStream, 0, stream, BigEndian(8, 4)));
  }
  EXPECT_TRUE(server().is_closed());
  EXPECT_THAT(answer_.GoawayText(), HasSubstr("begins and resets"));
  EXPECT_EQ(server().stream().begun, server().stream().ended);
}

TEST_F(Http2ConnectionTest, AllowsTwiceItsResetsASecondAtFirst) {
  limits_.resets_per_second_max = 3;
  Open();
  const auto reset = [this](std::uint32_t stream) {
    Send(Headers(stream) + Frame(FrameType::kRstStream, 0, stream, BigEndian(8, 4)));
  };
  for (std::uint32_t stream = 1; stream < 12; stream += 2) reset(stream);
  EXPECT_FALSE(server().is_closed());
  Advance(std::chrono::milliseconds(340));
  reset(13);
  EXPECT_FALSE(server().is_closed());
  reset(15);
  EXPECT_TRUE(server().is_closed());
}

TEST_F(Http2ConnectionTest, AllowsTenTimesItsEmptyFramesASecondAtFirst) {
  limits_.empty_frames_per_second_max = 2;
  Open();
  Send(Headers(1));
  for (int i = 0; i < 20; ++i) Send(Data(1, ""));
  EXPECT_FALSE(server().is_closed());
  Advance(std::chrono::milliseconds(510));
  Send(Data(1, ""));
  EXPECT_FALSE(server().is_closed());
  Send(Data(1, ""));
  EXPECT_TRUE(server().is_closed());
}

TEST_F(Http2ConnectionTest, CutsHeadersThatUnpackToVeryMuch) {
  Open();
  // One entry of 3,000 bytes in the table of headers, named again and again.
  const std::string value(3'000, 'v');
  const std::string entry = std::string("\x40\x01") + "b" + '\x7f' +
                            static_cast<char>(0x80 | ((3'000 - 127) % 128)) +
                            static_cast<char>((3'000 - 127) / 128) + value;
  Send(Headers(1, kSpec, kEndHeaders | kEndStream, entry + std::string(10'000, '\xbe')));
  EXPECT_TRUE(server().is_closed());
  EXPECT_THAT(answer_.GoawayText(), HasSubstr("metadata without end"));
}

TEST_F(Http2ConnectionTest, CutsAConnectionWhoseStateTakesTooMuchMemory) {
  limits_.session_bytes_max = 300U << 10;
  limits_.streams_per_connection_max = 100'000;
  Open();
  for (std::uint32_t stream = 1; stream < 4'000 && !server().is_closed(); stream += 2) {
    Send(Headers(stream));
  }
  EXPECT_TRUE(server().is_closed());
  EXPECT_EQ(server().stream().begun, server().stream().ended);
}

}  // namespace
}  // namespace simile::net
