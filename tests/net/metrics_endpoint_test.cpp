#include "net/metrics_endpoint.h"

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/loopback.h"
#include "net/scarce_descriptors.h"

namespace simile::net {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// More than the buffers of a connection hold.
constexpr std::size_t kLargeBytes = 16 << 20;

// The real clock, or one that is ahead of it.
class LaterClock final : public Clock {
 public:
  TimePoint Now() const override { return real_.Now() + later.load(); }
  std::chrono::system_clock::time_point WallNow() const override { return real_.WallNow(); }

  std::atomic<Duration> later = Duration(0);

 private:
  const RealClock real_;
};

HttpPages MakePages(std::function<std::string()> metrics) {
  return {.metrics = std::move(metrics),
          .unready_reason = [] { return std::string("draining"); },
          .missing = [] { return std::string(); }};
}

// Times out never unless a test says so: what it waits for then does not depend on time.
class MetricsEndpointTest : public testing::Test {
 protected:
  void Start(const MetricsEndpointOptions& options) {
    auto socket = Listen("127.0.0.1", 0);
    ASSERT_TRUE(socket.ok()) << socket.status();
    endpoint_ = std::make_unique<MetricsEndpoint>(
        *std::move(socket), MakePages([this] { return text_; }), clock_, options);
  }
  static MetricsEndpointOptions Patient() {
    return {.connections_max = 64, .request_timeout = hours(1), .answer_timeout = hours(1)};
  }

  base::FileDescriptor Connect() const { return ConnectTo(endpoint_->port()); }

  static void Send(const base::FileDescriptor& fd, const std::string& text) {
    EXPECT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // What arrives until the endpoint closes the connection.
  static std::string ReadAll(const base::FileDescriptor& fd) {
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = recv(fd.get(), buffer, sizeof buffer, 0)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(got));
    }
    return text;
  }
  static void AwaitReadable(const base::FileDescriptor& fd) {
    pollfd watched{fd.get(), POLLIN, 0};
    EXPECT_EQ(poll(&watched, 1, -1), 1);
  }
  std::string Scrape() const {
    const base::FileDescriptor fd = Connect();
    Send(fd, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    return ReadAll(fd);
  }

  LaterClock clock_;
  std::string text_ = "simile_rows 5\n";
  std::unique_ptr<MetricsEndpoint> endpoint_;  // last: its thread uses the members above
};

TEST_F(MetricsEndpointTest, AnswersAScrape) {
  Start(Patient());
  EXPECT_EQ(endpoint_->address(), "127.0.0.1:" + std::to_string(endpoint_->port()));
  EXPECT_THAT(Scrape(), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(Scrape(), EndsWith("\r\n\r\nsimile_rows 5\n"));
}

TEST_F(MetricsEndpointTest, AnswersWhileSixtyConnectionsAreSilent) {
  Start(Patient());  // they would keep a thread each for an hour
  std::vector<base::FileDescriptor> silent;
  for (int index = 0; index < 60; ++index) {
    silent.push_back(Connect());
    ASSERT_TRUE(silent.back().valid());
  }
  EXPECT_THAT(Scrape(), EndsWith("simile_rows 5\n"));
}

TEST_F(MetricsEndpointTest, ClosesTheOldestConnectionsBeyondTheMaximum) {
  Start({.connections_max = 8, .request_timeout = hours(1), .answer_timeout = hours(1)});
  std::vector<base::FileDescriptor> silent;
  for (int index = 0; index < 100; ++index) silent.push_back(Connect());
  EXPECT_THAT(Scrape(), EndsWith("simile_rows 5\n"));
  for (std::size_t index = 0; index <= 92; ++index) EXPECT_EQ(ReadAll(silent[index]), "");
  // The newest seven are still there: each may yet ask.
  for (std::size_t index = 93; index < 100; ++index) {
    Send(silent[index], "GET /metrics HTTP/1.1\r\n\r\n");
    EXPECT_THAT(ReadAll(silent[index]), EndsWith("simile_rows 5\n"));
  }
}

TEST_F(MetricsEndpointTest, KeepsTheConnectionThatTakesTheLastDescriptor) {
  Start(Patient());
  ScarceDescriptors descriptors;
  descriptors.GiveBack(2);  // both ends of a connection
  const base::FileDescriptor client = Connect();
  for (const char byte : std::string("GET /metrics HTTP/1.1\r\n\r\n")) Send(client, {byte});
  EXPECT_THAT(ReadAll(client), EndsWith("simile_rows 5\n"));
}

TEST_F(MetricsEndpointTest, AnswersARequestThatArrivesByteByByte) {
  Start(Patient());
  const base::FileDescriptor slow = Connect();
  for (const char byte : std::string("GET /metrics HTTP/1.1\r\nHost: a\r\n\r")) {
    Send(slow, {byte});
    EXPECT_THAT(Scrape(), EndsWith("simile_rows 5\n"));
  }
  Send(slow, "\n");
  EXPECT_THAT(ReadAll(slow), EndsWith("simile_rows 5\n"));
}

TEST_F(MetricsEndpointTest, ClosesConnectionsThatDoNotAskInTime) {
  Start({.connections_max = 8, .request_timeout = milliseconds(1), .answer_timeout = hours(1)});
  const base::FileDescriptor silent = Connect();
  const base::FileDescriptor slow = Connect();
  Send(slow, "GET /metr");
  EXPECT_EQ(ReadAll(silent), "");
  EXPECT_EQ(ReadAll(slow), "");
}

TEST_F(MetricsEndpointTest, SendsAnAnswerThatIsLargerThanTheSocketsBuffer) {
  text_.assign(kLargeBytes, '#');
  Start(Patient());
  const base::FileDescriptor reader = Connect();
  Send(reader, "GET /metrics HTTP/1.1\r\n\r\n");
  const base::FileDescriptor other = Connect();  // answered while the first one has not read
  Send(other, "GET /other HTTP/1.1\r\n\r\n");
  EXPECT_THAT(ReadAll(other), StartsWith("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_GT(ReadAll(reader).size(), text_.size());
}

TEST_F(MetricsEndpointTest, ClosesConnectionsThatDoNotTakeTheirAnswer) {
  text_.assign(kLargeBytes, '#');
  Start(Patient());
  const base::FileDescriptor reader = Connect();
  Send(reader, "GET /metrics HTTP/1.1\r\n\r\n");
  AwaitReadable(reader);
  clock_.later = hours(2);
  const base::FileDescriptor other = Connect();  // wakes the endpoint, which closes the first one
  Send(other, "GET /other HTTP/1.1\r\n\r\n");
  EXPECT_THAT(ReadAll(other), StartsWith("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_LT(ReadAll(reader).size(), text_.size());
}

TEST_F(MetricsEndpointTest, RefusesAHeadWithoutEnd) {
  Start(Patient());
  const base::FileDescriptor fd = Connect();
  Send(fd, "GET /metrics HTTP/1.1\r\nX: " + std::string(10'000, 'x'));
  EXPECT_THAT(ReadAll(fd), StartsWith("HTTP/1.1 431 "));
}

TEST_F(MetricsEndpointTest, StopsAtOnceWhateverIsConnected) {
  Start(Patient());
  const base::FileDescriptor silent = Connect();
  const std::uint16_t port = endpoint_->port();
  EXPECT_THAT(Scrape(), EndsWith("simile_rows 5\n"));
  endpoint_.reset();
  EXPECT_EQ(ReadAll(silent), "");
  EXPECT_FALSE(ConnectTo(port).valid());
}

TEST_F(MetricsEndpointTest, GoesOnWhenTheTextCannotBeMade) {
  auto socket = Listen("127.0.0.1", 0);
  ASSERT_TRUE(socket.ok()) << socket.status();
  std::atomic<bool> fails = true;
  endpoint_ = std::make_unique<MetricsEndpoint>(*std::move(socket), MakePages([&]() -> std::string {
    if (fails) throw std::bad_alloc();
    return "later\n";
  }),
                                                clock_, Patient());
  EXPECT_EQ(Scrape(), "");
  fails = false;  // the endpoint's thread waits for the next request
  EXPECT_THAT(Scrape(), EndsWith("later\n"));
  endpoint_.reset();
}

// Of a server that serves, unless a reason is given.
std::string MakeAnswer(std::string_view head, const std::string& unready_reason = "",
                       const std::string& missing = "") {
  return AnswerScrape(head, {.metrics = [] { return std::string("simile_rows 5\n"); },
                             .unready_reason = [&] { return unready_reason; },
                             .missing = [&] { return missing; }});
}

std::string Refused(std::string_view head) {
  bool asked = false;
  const auto page = [&asked] {
    asked = true;
    return std::string();
  };
  std::string answer =
      AnswerScrape(head, {.metrics = page, .unready_reason = page, .missing = page});
  EXPECT_FALSE(asked) << head;
  EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n"));
  return answer.substr(0, answer.find('\r'));
}

TEST(AnswerScrapeTest, GivesTheMetrics) {
  EXPECT_EQ(MakeAnswer("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"),
            "HTTP/1.1 200 OK\r\n"
            "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            "Content-Length: 14\r\n"
            "Allow: GET, HEAD\r\n"
            "Connection: close\r\n"
            "\r\n"
            "simile_rows 5\n");
  EXPECT_THAT(MakeAnswer("GET /metrics?name[]=simile_rows HTTP/1.0\n\n"),
              EndsWith("\r\n\r\nsimile_rows 5\n"));
}

TEST(AnswerScrapeTest, LeavesOutTheTextForHead) {
  const std::string answer = MakeAnswer("HEAD /metrics HTTP/1.1\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 14\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
  EXPECT_THAT(MakeAnswer("HEAD /other HTTP/1.1\r\n\r\n"), EndsWith("\r\n\r\n"));
}

TEST(AnswerScrapeTest, IsAliveWhateverItServes) {
  const std::string answer = MakeAnswer("GET /healthz HTTP/1.1\r\n\r\n", "draining");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nalive\n"));
}

TEST(AnswerScrapeTest, SaysWhyItIsNotReady) {
  std::string answer = MakeAnswer("GET /readyz HTTP/1.1\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nserving\n"));
  answer = MakeAnswer("GET /readyz?verbose HTTP/1.1\r\n\r\n", "loading films, 43 %");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Length: 20\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nloading films, 43 %\n"));
  answer = MakeAnswer("GET /readyz HTTP/1.1\r\n\r\n", "", "books, users");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nserving without books, users\n"));
  answer = MakeAnswer("HEAD /readyz HTTP/1.1\r\n\r\n", "draining");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST(AnswerScrapeTest, RefusesOtherRequests) {
  EXPECT_EQ(Refused("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(Refused("GET /metricsandmore HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(Refused("GET /healthz/ HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(Refused("POST /readyz HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
  EXPECT_EQ(Refused("POST /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
  EXPECT_EQ(Refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(Refused("\r\n\r\n"), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(Refused("GET /metrics\r\n\r\n"), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(Refused("GET /metrics HTTP/1.1\r\nX: and so on"),
            "HTTP/1.1 431 Request Header Fields Too Large");
}

TEST(AnswerScrapeTest, KnowsTheEndOfAHead) {
  EXPECT_TRUE(IsWholeHead("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(IsWholeHead("GET / HTTP/1.1\n\nbody"));
  EXPECT_TRUE(IsWholeHead("GET / HTTP/1.1\n\r\n"));
  EXPECT_FALSE(IsWholeHead(""));
  EXPECT_FALSE(IsWholeHead("GET / HTTP/1.1\r\nHost: a\r\n"));
}

}  // namespace
}  // namespace simile::net
