#include "observe/metrics_endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "observe/metrics.h"

namespace simile::observe {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Sends an HTTP/1.0 request to 127.0.0.1:port and returns the whole response.
std::string Get(std::uint16_t port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
    EXPECT_EQ(send(fd, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    char buffer[4096];
    for (ssize_t got = 0; (got = recv(fd, buffer, sizeof buffer, 0)) > 0;) {
      answer.append(buffer, static_cast<std::size_t>(got));
    }
  }
  close(fd);
  return answer;
}

TEST(MetricsEndpointTest, ServesMetricsOnAnyFreePort) {
  const Metrics metrics(
      {.version = "0.1.0", .build = "g1", .commit = {}, .compiler = {}, .build_type = {}});
  const auto endpoint = MetricsEndpoint::Start("127.0.0.1", 0, metrics.Collectables());
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  ASSERT_NE((*endpoint)->port(), 0);
  const std::string answer = Get((*endpoint)->port(), "/metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(answer, HasSubstr("simile_build_info{build=\"g1\",version=\"0.1.0\"} 1\n"));
  EXPECT_THAT(Get((*endpoint)->port(), "/other"), HasSubstr(" 404 Not Found"));
}

TEST(MetricsEndpointTest, NamesTheAddressThatIsTaken) {
  const auto first = MetricsEndpoint::Start("127.0.0.1", 0, {});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = MetricsEndpoint::Start("127.0.0.1", (*first)->port(), {});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(
      std::string(second.status().message()),
      HasSubstr("cannot listen for metrics on 127.0.0.1:" + std::to_string((*first)->port())));
}

}  // namespace
}  // namespace simile::observe
