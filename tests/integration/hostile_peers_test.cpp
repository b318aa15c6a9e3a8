// What a peer can send that no gRPC client would, over a connection of its own, while a client asks
// for films: the peer is cut or refused, the client served, and memory stays in bounds.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "integration/films_server.h"
#include "integration/honest_client.h"
#include "integration/raw_call.h"
#include "integration/raw_peer.h"
#include "net/http2_frames.h"

namespace simile::integration {
namespace {

using net::BigEndian;
using net::Frame;
using net::FrameType;
using net::kEndHeaders;
using net::kEndStream;
using net::kHttp2Preface;
using net::kPadded;
using net::Literal;
using net::MessagePrefix;
using net::Settings;

constexpr std::uint64_t kMemoryMax = 128U << 20;
#ifdef __SANITIZE_ADDRESS__
constexpr std::uint64_t kFreedMax =
    256U << 20;  // AddressSanitizer keeps freed memory: quarantine_size_mb
#else
constexpr std::uint64_t kFreedMax = 0;
#endif
constexpr std::uint8_t kSettingsAck = 1;
constexpr std::uint32_t kLastStream = 0x7fff'ffff;

// What becomes of the peer.
enum class Fate : std::uint8_t {
  kCut,      // the server closes its connection
  kRefused,  // its call ends with an error or a reset, its connection stays
  kIgnored,  // what it sent has no effect: its connection still answers
  kCutOrIgnored,
};

struct HostilePeer {
  std::string name;
  Fate fate;
  std::function<void(RawPeer& peer)> act;
  std::uint32_t refused_stream = 1;
};
void PrintTo(const HostilePeer& peer, std::ostream* out) { *out << peer.name; }

// With the answer to the server's settings, which count from then on.
std::string Opening() {
  return kHttp2Preface + Settings() + Frame(FrameType::kSettings, kSettingsAck, 0);
}

std::string Headers(std::uint32_t stream, std::uint8_t flags = kEndHeaders,
                    const std::string& more = {}) {
  return Frame(FrameType::kHeaders, flags, stream, net::CallHeaders(kSearchMethod) + more);
}

std::string Data(std::uint32_t stream, const std::string& payload, std::uint8_t flags = 0) {
  return Frame(FrameType::kData, flags, stream, payload);
}

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// Sends the opening and then the bytes, `times` times or until it is cut.
std::function<void(RawPeer&)> Flood(const std::string& bytes, int times = 1) {
  return [bytes, times](RawPeer& peer) {
    bool goes_on = peer.Send(Opening());
    for (int i = 0; i < times && goes_on; ++i) goes_on = peer.Send(bytes);
  };
}
// Sends the bytes when the server's limit on metadata holds: once the peer has answered its
// settings, which come before the answer to a ping.
std::function<void(RawPeer&)> AfterSettings(const std::string& bytes) {
  return [bytes](RawPeer& peer) {
    peer.Send(kHttp2Preface + Settings());
    EXPECT_TRUE(peer.AnswersPing());
    peer.Send(Frame(FrameType::kSettings, kSettingsAck, 0) + bytes);
  };
}
std::function<void(RawPeer&)> Once(const std::string& bytes) {
  return [bytes](RawPeer& peer) { peer.Send(bytes); };
}

void ResetRapidly(RawPeer& peer) {
  bool goes_on = peer.Send(Opening());
  for (std::uint32_t stream = 1; stream < 800'000 && goes_on;) {
    std::string bytes;
    for (int i = 0; i < 100; ++i, stream += 2) {
      bytes += Headers(stream) + Frame(FrameType::kRstStream, 0, stream, BigEndian(8, 4));
    }
    goes_on = peer.Send(bytes);
  }
}

void BeginWithoutEnd(RawPeer& peer) {
  bool goes_on = peer.Send(Opening());
  for (std::uint32_t stream = 1; stream < 100'000 && goes_on; stream += 2) {
    goes_on = peer.Send(Headers(stream));
  }
}

// A hundred calls with a body each, all but its last bytes.
std::function<void(RawPeer&)> LeaveUnfinished(std::uint32_t declared, int frames) {
  return [declared, frames](RawPeer& peer) {
    bool goes_on =
        peer.Send(Opening() + Frame(FrameType::kWindowUpdate, 0, 0, BigEndian(1U << 30, 4)));
    for (std::uint32_t stream = 1; stream < 201 && goes_on; stream += 2) {
      goes_on = peer.Send(Headers(stream) +
                          Data(stream, MessagePrefix(declared) + "the beginning "
                                                                 "of a very long list of vectors"));
    }
    const std::string more(16'384, 'x');
    for (int i = 0; i < frames && goes_on; ++i) {
      for (std::uint32_t stream = 1; stream < 201 && goes_on; stream += 2) {
        goes_on = peer.Send(Data(stream, more));
      }
    }
  };
}

// A message of groups inside groups.
std::string Nested(int depth) {
  const std::string message = Repeated("\x7b", depth) + Repeated("\x7c", depth);  // field 15
  return Headers(1) +
         Data(1, MessagePrefix(static_cast<std::uint32_t>(message.size())) + message, kEndStream);
}

// A header that the others of the call follow, with more than limits.metadata_bytes_max of them.
std::string LongMetadata(const std::string& name, const std::string& value) {
  return Frame(FrameType::kHeaders, kEndHeaders, 1,
               "\x83" + Literal(":path", kSearchMethod) + Literal(name, value) +
                   Repeated(Literal("x", std::string(120, 'y')), 100));
}

// Metadata of one entry in the table of headers that is named again and again.
std::string HpackBomb() {
  const std::string value(3'000, 'v');
  const std::string entry = std::string("\x40\x01") + "b" + '\x7f' +
                            static_cast<char>(0x80 | ((3'000 - 127) % 128)) +
                            static_cast<char>((3'000 - 127) / 128) + value;
  return Headers(1, kEndHeaders | kEndStream, entry + std::string(10'000, '\xbe'));
}

std::vector<HostilePeer> HostilePeers() {
  const std::string ping = Frame(FrameType::kPing, 0, 0, "12345678");
  const std::string oversized = net::FrameOf(0, 0, 1, std::string(20'000, 'x'), 0xff'ffff);
  return {
      {"SpeaksHttp1", Fate::kCut, Once("GET / HTTP/1.1\r\nHost: films\r\n\r\n")},
      {"SpeaksTls", Fate::kCut,
       Once(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11))},
      {"SendsHalfAPreface", Fate::kCut, Once(kHttp2Preface.substr(0, 12))},
      {"SendsNothing", Fate::kCut, [](RawPeer&) {}},
      {"SendsNoSettings", Fate::kCut, Once(kHttp2Preface)},
      {"EndsThePrefaceWrongly", Fate::kCut, Once("PRI * HTTP/2.0\r\n\r\nSM\r\n\rX")},
      {"FloodsSettings", Fate::kCut, Flood(Repeated(Settings(), 100), 100'000)},
      {"FloodsPings", Fate::kCut, Flood(Repeated(ping, 100), 100'000)},
      {"FloodsPriorities", Fate::kCut,
       Flood(Repeated(Frame(FrameType::kPriority, 0, 1, std::string(5, '\0')), 100), 100'000)},
      {"FloodsWindowUpdates", Fate::kCut,
       Flood(Repeated(Frame(FrameType::kWindowUpdate, 0, 0, BigEndian(1, 4)), 100), 100'000)},
      {"FloodsEmptyData", Fate::kCut,
       [](RawPeer& peer) {
         if (peer.Send(Opening() + Headers(1))) Flood(Repeated(Data(1, ""), 100), 100'000)(peer);
       }},
      {"FloodsPadding", Fate::kCut,
       [](RawPeer& peer) {
         bool goes_on = peer.Send(Opening() + Headers(1));
         for (int i = 0; i < 100'000 && goes_on; ++i) {
           goes_on = peer.Send(Data(1, std::string("\x04pads", 5), kPadded));
         }
       }},
      {"FloodsUnknownFrames", Fate::kCut,
       Flood(Repeated(Frame(std::uint8_t{0xee}, 0, 0, "?"), 100), 100'000)},
      {"ResetsRapidly", Fate::kCut, ResetRapidly},
      {"BeginsCallsWithoutEnd", Fate::kCut, BeginWithoutEnd},
      {"SendsLongMetadata", Fate::kCut,
       AfterSettings(Headers(1, kEndHeaders, Repeated(Literal("x", std::string(120, 'y')), 100)))},
      // One of these three headers and too many others end gRPC 1.51 as upstream has it
      // (CVE-2023-1428).
      {"SendsTeAndLongMetadata", Fate::kCut, AfterSettings(LongMetadata("te", "x"))},
      {"SendsASchemeAndLongMetadata", Fate::kCut, AfterSettings(LongMetadata(":scheme", "x"))},
      {"SendsLoadStatisticsAndLongMetadata", Fate::kCut,
       AfterSettings(LongMetadata("grpclb_client_stats", "x"))},
      // Where this did not end the connection, its table of headers would stay wrong
      // (CVE-2024-7246).
      {"SendsMisencodedBinaryMetadata", Fate::kCut,
       Flood(Headers(1, kEndHeaders, Literal("x-bin", "a$b")))},
      {"SendsMetadataWithoutEnd", Fate::kCut,
       [](RawPeer& peer) {
         bool goes_on = peer.Send(Opening() + Headers(1, 0));
         const std::string more = Repeated(Literal("x", std::string(120, 'y')), 100);
         for (int i = 0; i < 100'000 && goes_on; ++i) {
           goes_on = peer.Send(Frame(FrameType::kContinuation, 0, 1, more));
         }
       }},
      {"SendsEmptyMetadataWithoutEnd", Fate::kCut,
       [](RawPeer& peer) {
         bool goes_on = peer.Send(Opening() + Headers(1, 0));
         for (int i = 0; i < 1'000'000 && goes_on; ++i) {
           goes_on = peer.Send(Frame(FrameType::kContinuation, 0, 1));
         }
       }},
      {"SendsHpackGarbage", Fate::kCut,
       Flood(Frame(FrameType::kHeaders, kEndHeaders, 1, std::string(100, '\xff')))},
      {"SendsAnHpackBomb", Fate::kCut, Flood(HpackBomb())},
      {"SendsFramesThatAreTooLarge", Fate::kCut, Flood(Headers(1) + oversized)},
      {"ContinuesNothing", Fate::kCut, Flood(Frame(FrameType::kContinuation, kEndHeaders, 1, "x"))},
      {"SendsAFrameAmidMetadata", Fate::kCut, Flood(Headers(1, 0) + ping)},
      {"OpensNoWindow", Fate::kCut,
       Flood(Headers(1) + Frame(FrameType::kWindowUpdate, 0, 0, BigEndian(0, 4)))},
      {"SendsSettingsOfAnOddLength", Fate::kCut, Flood(Frame(FrameType::kSettings, 0, 0, "12345"))},
      {"SendsSettingsOnAStream", Fate::kCut, Flood(Frame(FrameType::kSettings, 0, 1))},
      {"SendsAShortPing", Fate::kCut, Flood(Frame(FrameType::kPing, 0, 0, "1234"))},
      {"SendsAShortReset", Fate::kCut, Flood(Headers(1) + Frame(FrameType::kRstStream, 0, 1, "1"))},
      {"SendsDataOnAnIdleStream", Fate::kIgnored, Flood(Data(99, "data"))},
      {"ResetsAnIdleStream", Fate::kIgnored,
       Flood(Frame(FrameType::kRstStream, 0, 99, BigEndian(8, 4)))},
      {"BeginsAStreamOfTheServer", Fate::kIgnored, Flood(Headers(2))},
      {"BeginsAnEarlierStream", Fate::kIgnored, Flood(Headers(kLastStream) + Headers(1))},
      {"SendsTrailersWithoutEnd", Fate::kCut, Flood(Headers(1) + Headers(1))},
      {"SendsAnUnknownCompression", Fate::kRefused,
       Flood(Headers(1, kEndHeaders, Literal("grpc-encoding", "none-such")) +
             Data(1, std::string("\x01\x00\x00\x00\x03xyz", 8), kEndStream))},
      {"SendsWhatMayUnpackToAnything", Fate::kRefused,
       Flood(Headers(1, kEndHeaders, Literal("grpc-encoding", "gzip")) +
             Data(1, std::string("\x01\x00\x00\x00\x03xyz", 8), kEndStream))},
      {"SendsABadMessageFlag", Fate::kRefused,
       Flood(Headers(1) + Data(1, std::string("\x07\x00\x00\x00\x03xyz", 8), kEndStream))},
      {"NestsDeeply", Fate::kRefused, Flood(Nested(5'000))},
      {"DeclaresTheLargestMessage", Fate::kRefused, LeaveUnfinished(~0U, 0)},
      {"LeavesBodiesUnfinished", Fate::kRefused, LeaveUnfinished(19U << 20, 0), 199},
      // gRPC ends the connection only if the calls overtake the windows that it opens meanwhile.
      {"IgnoresFlowControl", Fate::kCutOrIgnored, LeaveUnfinished(60'000, 3)},
      {"ClosesItsHalfAmidACall", Fate::kCut,
       [](RawPeer& peer) {
         peer.Send(Opening() + Headers(1) + Data(1, MessagePrefix(1'000) + "x"));
         peer.HalfClose();
       }},
  };
}

std::uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

class HostilePeersTest : public testing::TestWithParam<HostilePeer> {
 protected:
  static void SetUpTestSuite() {
    server_ = std::make_unique<FilmsServer>([](app::Config& config) {
      config.frame_guard = net::FrameGuardWhen::kOn;
      config.limits.handshake_timeout = std::chrono::milliseconds(500);
    });
  }
  static void TearDownTestSuite() {
    if (!times_.empty()) std::printf("hostile peers: %s\n", SearchTimesText(times_).c_str());
    server_.reset();
  }

  static inline std::unique_ptr<FilmsServer> server_;
  static inline SearchTimes times_;
};

void ExpectRefused(RawPeer& peer, std::uint32_t stream) {
  EXPECT_TRUE(peer.AwaitCallEnd(stream));
  EXPECT_TRUE(peer.AnswersPing());
}

TEST_P(HostilePeersTest, HarmsNobody) {
  v1::SearchResponse right;
  ASSERT_TRUE(server_->NewClient().Search(ToyStory(), right).ok());
  HonestClient honest(server_->NewClient(), ToyStory(), [&](const v1::SearchResponse& response) {
    return response.results(0).DebugString() == right.results(0).DebugString()
               ? testing::AssertionSuccess()
               : testing::AssertionFailure() << response.DebugString();
  });
  honest.AwaitAnswer();
  const std::uint64_t before = ResidentBytes();
  {
    RawPeer peer(server_->app().port(), "127.0.0.9");
    GetParam().act(peer);
    switch (GetParam().fate) {
      case Fate::kCut:
        EXPECT_TRUE(peer.AwaitClosed());
        break;
      case Fate::kRefused:
        ExpectRefused(peer, GetParam().refused_stream);
        break;
      case Fate::kIgnored:
        EXPECT_TRUE(peer.AnswersPing());
        break;
      case Fate::kCutOrIgnored:
        EXPECT_TRUE(peer.AnswersPing() || peer.AwaitClosed());
        break;
    }
    const std::uint64_t after = ResidentBytes();
    EXPECT_LT(after, before + kMemoryMax + kFreedMax);
  }
  honest.AwaitAnswer();
  std::ranges::copy(honest.End(), std::back_inserter(times_));
}

INSTANTIATE_TEST_SUITE_P(All, HostilePeersTest, testing::ValuesIn(HostilePeers()),
                         [](const auto& peer) { return peer.param.name; });

}  // namespace
}  // namespace simile::integration
