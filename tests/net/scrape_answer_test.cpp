#include "net/scrape_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simile::net {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Of a server that serves, unless a reason is given.
std::string Answer(std::string_view head, const std::string& unready_reason = "",
                   const std::string& missing = "") {
  return ScrapeAnswer(head, {.metrics = [] { return std::string("simile_rows 5\n"); },
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
      ScrapeAnswer(head, {.metrics = page, .unready_reason = page, .missing = page});
  EXPECT_FALSE(asked) << head;
  EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n"));
  return answer.substr(0, answer.find('\r'));
}

TEST(ScrapeAnswerTest, GivesTheMetrics) {
  EXPECT_EQ(Answer("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"),
            "HTTP/1.1 200 OK\r\n"
            "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            "Content-Length: 14\r\n"
            "Allow: GET, HEAD\r\n"
            "Connection: close\r\n"
            "\r\n"
            "simile_rows 5\n");
  EXPECT_THAT(Answer("GET /metrics?name[]=simile_rows HTTP/1.0\n\n"),
              EndsWith("\r\n\r\nsimile_rows 5\n"));
}

TEST(ScrapeAnswerTest, LeavesOutTheTextForHead) {
  const std::string answer = Answer("HEAD /metrics HTTP/1.1\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 14\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
  EXPECT_THAT(Answer("HEAD /other HTTP/1.1\r\n\r\n"), EndsWith("\r\n\r\n"));
}

TEST(ScrapeAnswerTest, IsAliveWhateverItServes) {
  const std::string answer = Answer("GET /healthz HTTP/1.1\r\n\r\n", "draining");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nalive\n"));
}

TEST(ScrapeAnswerTest, SaysWhyItIsNotReady) {
  std::string answer = Answer("GET /readyz HTTP/1.1\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nserving\n"));
  answer = Answer("GET /readyz?verbose HTTP/1.1\r\n\r\n", "loading films, 43 %");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Length: 20\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nloading films, 43 %\n"));
  answer = Answer("GET /readyz HTTP/1.1\r\n\r\n", "", "books, users");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nserving without books, users\n"));
  answer = Answer("HEAD /readyz HTTP/1.1\r\n\r\n", "draining");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST(ScrapeAnswerTest, RefusesOtherRequests) {
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

TEST(ScrapeAnswerTest, KnowsTheEndOfAHead) {
  EXPECT_TRUE(IsWholeHead("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(IsWholeHead("GET / HTTP/1.1\n\nbody"));
  EXPECT_TRUE(IsWholeHead("GET / HTTP/1.1\n\r\n"));
  EXPECT_FALSE(IsWholeHead(""));
  EXPECT_FALSE(IsWholeHead("GET / HTTP/1.1\r\nHost: a\r\n"));
}

}  // namespace
}  // namespace simile::net
