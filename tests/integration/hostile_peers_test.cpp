// A peer sends what no gRPC client would send, over a connection of its own, while a client asks
// for films. The peer is cut or refused, the client is served, and memory stays in bounds.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "integration/access_server.h"
#include "integration/films_server.h"
#include "integration/honest_client.h"
#include "integration/raw_call.h"
#include "integration/raw_peer.h"
#include "integration/tls_session.h"
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
constexpr std::uint8_t kAck = 1;  // of SETTINGS and PING
constexpr std::uint32_t kLastStream = 0x7fff'ffff;

// How the server reacts to the peer.
enum class Reaction : std::uint8_t {
  kCut,      // the server closes its connection
  kGuarded,  // the frame guard does; gRPC itself would not, or only after taking much
  kRefused,  // its call ends with an error or a reset, its connection stays
  kIgnored,  // what it sent has no effect: its connection still answers
  kServed,   // its call succeeds
  kCutOrIgnored,
};

struct HostilePeer {
  std::string name;
  Reaction reaction;
  std::function<void(RawPeer& peer)> act;
  std::uint32_t refused_stream = 1;
};
void PrintTo(const HostilePeer& peer, std::ostream* out) { *out << peer.name; }

std::string Greeting() { return kHttp2Preface + Settings(); }

// With the answer to the server's settings, which count from then on.
std::string Opening() { return Greeting() + Frame(FrameType::kSettings, kAck, 0); }

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
std::function<void(RawPeer&)> Flood(const std::string& bytes, int times = 1,
                                    const std::string& opening = Opening()) {
  return [bytes, times, opening](RawPeer& peer) {
    bool goes_on = peer.Send(opening);
    for (int i = 0; i < times && goes_on; ++i) goes_on = peer.Send(bytes);
  };
}
// Sends the bytes when the server's limit on metadata holds: once the peer has answered its
// settings, which come before the answer to a ping.
std::function<void(RawPeer&)> AfterSettings(const std::string& bytes) {
  return [bytes](RawPeer& peer) {
    peer.Send(Greeting());
    EXPECT_TRUE(peer.AnswersPing());
    peer.Send(Frame(FrameType::kSettings, kAck, 0) + bytes);
  };
}
std::function<void(RawPeer&)> Once(const std::string& bytes) {
  return [bytes](RawPeer& peer) { peer.Send(bytes); };
}
std::function<void(RawPeer&)> ByteByByte(const std::string& bytes) {
  return [bytes](RawPeer& peer) {
    for (const char byte : bytes) peer.Send({&byte, 1});
  };
}

// A whole message of gRPC.
std::string MessageFrame(const v1::SearchRequest& request) {
  const std::string bytes = request.SerializeAsString();
  return MessagePrefix(static_cast<std::uint32_t>(bytes.size())) + bytes;
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

// Without an answer to the server's settings: gRPC then knows no limit.
void BeginWithoutEnd(RawPeer& peer) {
  bool goes_on = peer.Send(Greeting());
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

// The header, then other headers of the call, more than limits.metadata_bytes_max of them.
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
  const std::string oversized = net::Frame(0, 0, 1, std::string(20'000, 'x'), 0xff'ffff);
  return {
      {"SpeaksHttp1", Reaction::kCut, Once("GET / HTTP/1.1\r\nHost: films\r\n\r\n")},
      {"SpeaksTls", Reaction::kCut,
       Once(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11))},
      {"SendsHalfAPreface", Reaction::kCut, Once(kHttp2Preface.substr(0, 12))},
      {"SendsNothing", Reaction::kCut, [](RawPeer&) {}},
      {"SendsNoSettings", Reaction::kCut, Once(kHttp2Preface)},
      {"EndsThePrefaceWrongly", Reaction::kCut, Once("PRI * HTTP/2.0\r\n\r\nSM\r\n\rX")},
      {"FloodsSettings", Reaction::kGuarded, Flood(Repeated(Settings(), 100), 100'000)},
      {"FloodsPings", Reaction::kCut, Flood(Repeated(ping, 100), 100'000)},  // gRPC ends it, too
      {"FloodsAnswersToPings", Reaction::kGuarded,
       Flood(Repeated(Frame(FrameType::kPing, kAck, 0, "12345678"), 100), 100'000)},
      {"FloodsPriorities", Reaction::kGuarded,
       Flood(Repeated(Frame(FrameType::kPriority, 0, 1, std::string(5, '\0')), 100), 100'000)},
      {"FloodsWindowUpdates", Reaction::kGuarded,
       Flood(Repeated(Frame(FrameType::kWindowUpdate, 0, 0, BigEndian(1, 4)), 100), 100'000)},
      {"FloodsEmptyData", Reaction::kGuarded,
       Flood(Repeated(Data(1, ""), 100), 100'000, Opening() + Headers(1))},
      {"FloodsPadding", Reaction::kGuarded,
       Flood(Data(1, std::string("\x04pads", 5), kPadded), 100'000, Opening() + Headers(1))},
      {"FloodsUnknownFrames", Reaction::kGuarded,
       Flood(Repeated(Frame(std::uint8_t{0xee}, 0, 0, "?"), 100), 100'000)},
      {"ResetsRapidly", Reaction::kGuarded, ResetRapidly},
      {"BeginsCallsWithoutEnd", Reaction::kGuarded, BeginWithoutEnd},
      {"SendsLongMetadata", Reaction::kRefused,
       AfterSettings(Headers(1, kEndHeaders, Repeated(Literal("x", std::string(120, 'y')), 100)))},
      // Each of these three headers, with too many other headers, ends gRPC 1.51 as upstream has it
      // (CVE-2023-1428).
      {"SendsTeAndLongMetadata", Reaction::kRefused, AfterSettings(LongMetadata("te", "x"))},
      {"SendsASchemeAndLongMetadata", Reaction::kRefused,
       AfterSettings(LongMetadata(":scheme", "x"))},
      {"SendsLoadStatisticsAndLongMetadata", Reaction::kRefused,
       AfterSettings(LongMetadata("grpclb_client_stats", "x"))},
      {"SendsMisencodedBinaryMetadata", Reaction::kRefused,
       Flood(Headers(1, kEndHeaders, Literal("x-bin", "a$b")))},
      // Again gRPC knows no limit.
      {"SendsMetadataWithoutEnd", Reaction::kGuarded,
       Flood(Frame(FrameType::kContinuation, 0, 1,
                   Repeated(Literal("x", std::string(120, 'y')), 100)),
             100'000, Greeting() + Headers(1, 0))},
      {"SendsEmptyMetadataWithoutEnd", Reaction::kGuarded,
       Flood(Frame(FrameType::kContinuation, 0, 1), 1'000'000, Opening() + Headers(1, 0))},
      {"SendsHpackGarbage", Reaction::kCut,
       Flood(Frame(FrameType::kHeaders, kEndHeaders, 1, std::string(100, '\xff')))},
      {"SendsAnHpackBomb", Reaction::kCut, Flood(HpackBomb())},
      {"SendsFramesThatAreTooLarge", Reaction::kCut, Flood(Headers(1) + oversized)},
      {"ContinuesNothing", Reaction::kCut,
       Flood(Frame(FrameType::kContinuation, kEndHeaders, 1, "x"))},
      {"SendsAFrameAmidMetadata", Reaction::kCut, Flood(Headers(1, 0) + ping)},
      {"OpensNoWindow", Reaction::kCut,
       Flood(Headers(1) + Frame(FrameType::kWindowUpdate, 0, 0, BigEndian(0, 4)))},
      {"SendsSettingsOfAnOddLength", Reaction::kCut,
       Flood(Frame(FrameType::kSettings, 0, 0, "12345"))},
      {"SendsSettingsOnAStream", Reaction::kCut, Flood(Frame(FrameType::kSettings, 0, 1))},
      {"SendsAShortPing", Reaction::kCut, Flood(Frame(FrameType::kPing, 0, 0, "1234"))},
      {"SendsAShortReset", Reaction::kCut,
       Flood(Headers(1) + Frame(FrameType::kRstStream, 0, 1, "1"))},
      {"SendsDataOnAnIdleStream", Reaction::kCut, Flood(Data(99, "data"))},
      {"ResetsAnIdleStream", Reaction::kCut,
       Flood(Frame(FrameType::kRstStream, 0, 99, BigEndian(8, 4)))},
      {"BeginsAStreamOfTheServer", Reaction::kCut, Flood(Headers(2))},
      {"BeginsAnEarlierStream", Reaction::kIgnored, Flood(Headers(kLastStream) + Headers(1))},
      {"SendsTrailersWithoutEnd", Reaction::kRefused, Flood(Headers(1) + Headers(1))},
      {"SendsAnUnknownCompression", Reaction::kRefused,
       Flood(Headers(1, kEndHeaders, Literal("grpc-encoding", "none-such")) +
             Data(1, std::string("\x01\x00\x00\x00\x03xyz", 8), kEndStream))},
      {"SendsWhatMayUnpackToAnything", Reaction::kRefused,
       Flood(Headers(1, kEndHeaders, Literal("grpc-encoding", "gzip")) +
             Data(1, std::string("\x01\x00\x00\x00\x03xyz", 8), kEndStream))},
      {"SendsABadMessageFlag", Reaction::kRefused,
       Flood(Headers(1) + Data(1, std::string("\x07\x00\x00\x00\x03xyz", 8), kEndStream))},
      {"NestsDeeply", Reaction::kRefused, Flood(Nested(5'000))},
      {"DeclaresTheLargestMessage", Reaction::kRefused, LeaveUnfinished(~0U, 0)},
      // Those beyond it wait.
      {"DeclaresMoreThanItsBudget", Reaction::kIgnored, LeaveUnfinished(19U << 20, 0)},
      {"SendsItsCallByteByByte", Reaction::kServed,
       ByteByByte(Opening() + Headers(1) + Data(1, MessageFrame(ToyStory()), kEndStream))},
      // gRPC ends the connection only if the calls overtake the windows that it opens meanwhile.
      {"IgnoresFlowControl", Reaction::kCutOrIgnored, LeaveUnfinished(60'000, 3)},
      {"ClosesItsHalfAmidACall", Reaction::kCut,
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

// The most memory that the process has while a client asks for films; each answer must be right.
class WatchedClient {
 public:
  explicit WatchedClient(Client client) {
    EXPECT_TRUE(client.Search(ToyStory(), right_).ok());
    honest_.emplace(std::move(client), ToyStory(), [this](const v1::SearchResponse& response) {
      peak_ = std::max<std::uint64_t>(peak_, ResidentBytes());
      return response.results(0).DebugString() == right_.results(0).DebugString()
                 ? testing::AssertionSuccess()
                 : testing::AssertionFailure() << response.DebugString();
    });
    honest_->AwaitAnswer();
    before_ = ResidentBytes();
  }

  void AwaitAnswer() const { honest_->AwaitAnswer(); }
  // After two more answers.
  SearchTimes End() {
    AwaitAnswer();
    return honest_->End();
  }
  // The growth since the first reading.
  std::uint64_t BytesTaken() const { return peak_ > before_ ? peak_ - before_ : 0; }

 private:
  v1::SearchResponse right_;
  std::uint64_t before_ = 0;
  std::atomic<std::uint64_t> peak_ = 0;
  std::optional<HonestClient> honest_;  // last: its thread uses the members above
};

// How many connections the frame guard has cut, or how many calls are refused for unfinished
// bodies.
double Rejected(FilmsServer& server, const std::string& reason) {
  return MetricValue(ScrapeMetrics(*server.app().metrics_port()),
                     "simile_rejected_total{reason=\"" + reason + "\"}");
}

class HostilePeersTest : public testing::TestWithParam<HostilePeer> {
 protected:
  static void SetUpTestSuite() {
    server_ = std::make_unique<FilmsServer>([](app::Config& config) {
      config.limits.handshake_timeout = std::chrono::milliseconds(500);
      // No connection is cut because the peer does not answer a ping.
      config.limits.keepalive_time = std::chrono::minutes(10);
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
  WatchedClient honest(server_->NewClient());
  const double cut_before = Rejected(*server_, "frame_guard");
  {
    RawPeer peer(server_->app().port(), "127.0.0.9");
    GetParam().act(peer);
    switch (GetParam().reaction) {
      case Reaction::kCut:
      case Reaction::kGuarded:
        EXPECT_TRUE(peer.AwaitClosed());
        break;
      case Reaction::kRefused:
        ExpectRefused(peer, GetParam().refused_stream);
        break;
      case Reaction::kIgnored:
        EXPECT_TRUE(peer.AnswersPing());
        break;
      case Reaction::kServed:
        EXPECT_TRUE(peer.AwaitData(1) && peer.AwaitCallEnd(1));
        EXPECT_EQ(peer.FindStatus(1), absl::StatusCode::kOk);
        break;
      case Reaction::kCutOrIgnored:
        EXPECT_TRUE(peer.AnswersPing() || peer.AwaitClosed());
        break;
    }
  }
  std::ranges::copy(honest.End(), std::back_inserter(times_));
  EXPECT_LT(honest.BytesTaken(), kMemoryMax + kFreedMax);
  if (GetParam().reaction == Reaction::kGuarded) {
    EXPECT_EQ(Rejected(*server_, "frame_guard"), cut_before + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostilePeersTest, testing::ValuesIn(HostilePeers()),
                         [](const auto& peer) { return peer.param.name; });

// Peers that speak no TLS, or too little of it, to a port with TLS.
std::vector<HostilePeer> PeersOfTls() {
  const std::string hello = ClientHello();
  std::string garbage;
  std::mt19937 random(20);
  for (int i = 0; i < 4'096; ++i) garbage += static_cast<char>(random());
  return {
      {"SpeaksHttp2", Reaction::kCut, Flood(Headers(1))},
      {"SpeaksHttp1", Reaction::kCut, Once("GET / HTTP/1.1\r\nHost: films\r\n\r\n")},
      {"SendsGarbage", Reaction::kCut, Once(garbage)},
      {"SendsNothing", Reaction::kCut, [](RawPeer&) {}},
      {"SendsHalfAHello", Reaction::kCut, Once(hello.substr(0, hello.size() / 2))},
      {"FallsSilentAfterItsHello", Reaction::kCut, Once(hello)},
      {"SendsGarbageAfterItsHello", Reaction::kCut, Once(hello + garbage)},
      {"ClosesItsHalfAmidItsHello", Reaction::kCut,
       [half = hello.substr(0, hello.size() / 2)](RawPeer& peer) {
         peer.Send(half);
         peer.HalfClose();
       }},
  };
}

class HostileTlsPeersTest : public testing::TestWithParam<HostilePeer> {};

TEST_P(HostileTlsPeersTest, HarmsNobody) {
  AccessServer server({AccessServer::Entry("ranker", "read")},
                      AccessServer::Encryption::kServerOnly, [](app::Config& config) {
                        config.limits.handshake_timeout = std::chrono::milliseconds(500);
                      });
  WatchedClient honest(server.NewClient("ranker"));
  {
    RawPeer peer(server.films().app().port(), "127.0.0.9");
    GetParam().act(peer);
    // Nor is another handshake held up.
    v1::SearchResponse response;
    EXPECT_TRUE(server.NewClient("ranker").Search(ToyStory(), response).ok());
    EXPECT_TRUE(peer.AwaitClosed());
  }
  std::printf("hostile TLS peer: %s\n", SearchTimesText(honest.End()).c_str());
  EXPECT_LT(honest.BytesTaken(), kMemoryMax + kFreedMax);
}

INSTANTIATE_TEST_SUITE_P(All, HostileTlsPeersTest, testing::ValuesIn(PeersOfTls()),
                         [](const auto& peer) { return peer.param.name; });

// Peers that vanish, as by a pulled cable: no FIN and no reset ever comes.
struct VanishingPeer {
  std::string name;
  AccessServer::Encryption encryption;
  std::function<void(RawPeer& peer)> act;  // before it vanishes
};
void PrintTo(const VanishingPeer& peer, std::ostream* out) { *out << peer.name; }

// Ends the handshake of TLS, sends the bytes encrypted, and waits for an answer.
std::function<void(RawPeer&)> Encrypted(const std::string& bytes) {
  return [bytes](RawPeer& peer) {
    const TlsSession session = NewTlsSession();
    SSL_set_fd(session.get(), peer.fd());
    EXPECT_EQ(SSL_connect(session.get()), 1);
    if (bytes.empty()) return;
    const auto size = static_cast<int>(bytes.size());
    EXPECT_EQ(SSL_write(session.get(), bytes.data(), size), size);
    char first = 0;
    EXPECT_EQ(SSL_read(session.get(), &first, 1), 1);
  };
}

// Makes a call whose answer has six megabytes, with windows for the whole answer. Waits until the
// answer has begun to come.
void AwaitBeginningOfAnswer(RawPeer& peer) {
  constexpr std::uint64_t kInitialWindowSize = 4;
  const std::string large = BigEndian(1U << 30, 4);
  const std::string token = Literal("authorization", "Bearer " + AccessServer::MakeToken("ranker"));
  peer.Send(kHttp2Preface +
            Frame(FrameType::kSettings, 0, 0, BigEndian(kInitialWindowSize, 2) + large) +
            Frame(FrameType::kWindowUpdate, 0, 0, large) + Headers(1, kEndHeaders, token) +
            Data(1, MessageFrame(SixMegabytes()), kEndStream));
  EXPECT_TRUE(peer.AwaitData(1));
}

std::vector<VanishingPeer> VanishingPeers() {
  using enum AccessServer::Encryption;
  return {
      {"AmidThePreface", kNone, Once(kHttp2Preface.substr(0, 12))},
      {"Idle", kNone,
       [](RawPeer& peer) {
         peer.Send(Opening());
         EXPECT_TRUE(peer.AnswersPing());
       }},
      {"AmidAnAnswer", kNone, AwaitBeginningOfAnswer},
      {"AmidTheHandshake", kServerOnly, Once(ClientHello())},
      {"AfterTheHandshake", kServerOnly, Encrypted("")},
      {"IdleEncrypted", kServerOnly, Encrypted(Opening())},
  };
}

class VanishingPeersTest : public testing::TestWithParam<VanishingPeer> {};

TEST_P(VanishingPeersTest, AreCutWhileOthersAreServed) {
  AccessServer server({AccessServer::Entry("ranker", "read")}, GetParam().encryption,
                      [](app::Config& config) {
                        config.limits.handshake_timeout = std::chrono::milliseconds(500);
                        config.limits.keepalive_time = std::chrono::milliseconds(500);
                        config.limits.keepalive_timeout = std::chrono::milliseconds(1'000);
                        // Neither ends the call whose answer is not taken.
                        config.limits.search_deadline_max = std::chrono::minutes(10);
                        config.limits.search_deadline_default = std::chrono::minutes(10);
                      });
  const std::uint16_t metrics_port = *server.films().app().metrics_port();
  const std::string open_connections = "simile_connections{state=\"open\"}";
  WatchedClient honest(server.NewClient("ranker"));
  const double connections = MetricValue(ScrapeMetrics(metrics_port), open_connections);
  {
    RawPeer peer(server.films().app().port(), "127.0.0.9");
    GetParam().act(peer);
    peer.Vanish();
    // This connection is accepted after that of the peer, which is therefore counted now.
    v1::SearchResponse response;
    EXPECT_TRUE(server.NewClient("ranker").Search(ToyStory(), response).ok());
    EXPECT_TRUE(AwaitMetric(metrics_port, open_connections, connections));
  }
  std::printf("vanished peer: %s\n", SearchTimesText(honest.End()).c_str());
  EXPECT_TRUE(AwaitMetric(metrics_port, kInFlight, 0));
}

INSTANTIATE_TEST_SUITE_P(All, VanishingPeersTest, testing::ValuesIn(VanishingPeers()),
                         [](const auto& peer) { return peer.param.name; });

// A request that comes byte by byte, a byte after each answer to another caller. gRPC reports no
// message that is not whole, and takes each byte for a sign of life. Only age ends the connection.
TEST(SlowPeerTest, IsCutWhenItsConnectionIsTooOld) {
  FilmsServer server([](app::Config& config) {
    config.limits.connection_age_max = std::chrono::milliseconds(100);
    config.limits.connection_age_grace = std::chrono::seconds(1);  // for calls of the honest client
  });
  WatchedClient honest(server.NewClient());
  RawPeer peer(server.app().port(), "127.0.0.9");
  peer.Send(Opening() + Headers(1) + Data(1, MessagePrefix(1U << 20)));
  while (peer.SendData(1, "x")) honest.AwaitAnswer();
  EXPECT_TRUE(peer.AwaitClosed());
  std::printf("slow peer: %s\n", SearchTimesText(honest.End()).c_str());
}

// One address begins requests of 128 MiB in all, and leaves each without its last byte. What the
// budget holds is received. Requests of half the budget more wait. The server refuses the rest.
TEST(UnfinishedBodiesTest, TakeNoMoreThanTheBudgetsOfTheirAddress) {
  constexpr std::uint64_t kMiB = 1U << 20;
  constexpr std::uint64_t kBudget = 16 * kMiB;
  constexpr std::uint64_t kOverhead = 32 * kMiB;
  constexpr std::size_t kFrameBytes = 16'384;
  constexpr int kConnections = 8;
  constexpr int kCalls = 16;  // a connection
  FilmsServer server([](app::Config& config) {
    config.limits.unfinished_bytes_per_peer_max = kBudget;
    config.limits.keepalive_timeout = std::chrono::minutes(10);  // no body counts as stuck
    config.limits.search_deadline_default = config.limits.search_deadline_max;  // outlasts the test
  });
  WatchedClient honest(server.NewClient());
  const std::string body = MessagePrefix(kMiB + 1) + std::string(kMiB, 'x');
  std::vector<RawPeer> peers;
  for (int connection = 0; connection < kConnections; ++connection) {
    RawPeer& peer = peers.emplace_back(server.app().port(), "127.0.0.9");
    EXPECT_TRUE(peer.Send(Opening()));
    for (std::uint32_t stream = 1; stream < 2 * kCalls; stream += 2) {
      EXPECT_TRUE(peer.Send(Headers(stream)));
      for (std::size_t at = 0; at < body.size(); at += kFrameBytes) {
        EXPECT_TRUE(peer.Send(Data(stream, body.substr(at, kFrameBytes))));
      }
    }
    EXPECT_TRUE(peer.AnswersPing());
  }
  honest.End();
  const double refused = Rejected(server, "unfinished_bodies");
  std::printf("of %d unfinished bodies of 1 MiB %.0f refused: %.1f MiB taken, of a budget of 16\n",
              kConnections * kCalls, refused, static_cast<double>(honest.BytesTaken()) / kMiB);
  // Each declares a byte more, and a little is counted besides.
  EXPECT_EQ(refused, kConnections * kCalls - (kBudget / kMiB - 1) - kBudget / kMiB / 2);
  EXPECT_LT(honest.BytesTaken(), kBudget + kBudget / 2 + kOverhead + kFreedMax);
}

// A peer leaves bodies unfinished that take its whole budget. Requests of the same address wait,
// and are served once the bodies that do not move are reset.
TEST(UnfinishedBodiesTest, AreResetWhenOthersWaitForTheirSpace) {
  FilmsServer server([](app::Config& config) {
    config.limits.unfinished_bytes_per_peer_max = 40U << 20;
    config.limits.keepalive_timeout = std::chrono::seconds(1);
  });
  RawPeer peer(server.app().port(), "127.0.0.1");
  EXPECT_TRUE(peer.Send(Opening()));
  for (const std::uint32_t stream : {1U, 3U}) {
    EXPECT_TRUE(peer.Send(Headers(stream) + Data(stream, MessagePrefix(19U << 20) + "begin")));
  }
  EXPECT_TRUE(peer.AnswersPing());
  v1::SearchRequest request = ToyStory();
  request.mutable_options()->add_exclude_ids(std::string(400, 'x'));
  for (int i = 0; i < 9'000; ++i) {
    request.mutable_options()->add_exclude_ids(std::string(400, 'x'));
  }
  v1::SearchResponse response;
  const Outcome outcome = server.NewClient().Search(request, response);
  EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
  EXPECT_TRUE(peer.AwaitCallEnd(1));
  EXPECT_EQ(peer.FindStatus(1), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace simile::integration
