#include "net/acceptor.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/loopback.h"
#include "net/scarce_descriptors.h"
#include "observe/exposed.h"

namespace simile::net {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// An acceptor on a free port that keeps the connections it hands over.
class AcceptorTest : public testing::Test {
 protected:
  void Start(const ConnectionTable::Options& options) {
    auto socket = Listen("127.0.0.1", 0);
    ASSERT_TRUE(socket.ok()) << socket.status();
    port_ = socket->port;
    table_.emplace(options);
    acceptor_.emplace(
        *std::move(socket), Acceptor::Options(), *table_,
        [this](AdmittedSocket admitted) { Keep(std::move(admitted)); }, clock_, metrics_, log_);
    acceptor_->Start();
  }

  void Keep(AdmittedSocket socket) {
    const std::lock_guard lock(mutex_);
    handed_over_.push_back(std::move(socket));
    changed_.notify_all();
  }
  void AwaitHandedOver(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return handed_over_.size() >= count; });
  }
  void CloseHandedOver() {
    const std::lock_guard lock(mutex_);
    handed_over_.clear();
  }

  std::string Metrics() const { return observe::Exposed(metrics_); }

  const RealClock clock_;
  std::ostringstream lines_;
  const observe::Logger log_{{.format = observe::LogFormat::kText, .level = {}, .sink = &lines_}};
  observe::Metrics metrics_{observe::BuildInfo{}};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<ConnectionTable> table_;
  std::vector<AdmittedSocket> handed_over_;
  std::uint16_t port_ = 0;
  std::optional<Acceptor> acceptor_;  // last: its thread uses the members above
};

TEST_F(AcceptorTest, HandsOverUpToThePeersLimitAndResetsTheRest) {
  Start({.connections_max = 1'024, .per_peer_max = 64});
  std::vector<base::FileDescriptor> clients;
  for (int index = 0; index < 70; ++index) {
    clients.push_back(ConnectTo(port_));
    ASSERT_TRUE(clients.back().valid());
  }
  AwaitHandedOver(64);
  for (std::size_t index = 64; index < 70; ++index) AwaitClosed(clients[index]);
  EXPECT_EQ(table_->CountOpen(), 64U);
  EXPECT_THAT(Metrics(), HasSubstr("simile_rejected_total{reason=\"connections_per_peer\"} 6\n"));
}

TEST_F(AcceptorTest, ResetsConnectionsBeyondTheTotal) {
  Start({.connections_max = 3, .per_peer_max = 64});
  std::vector<base::FileDescriptor> clients;
  clients.reserve(5);
  for (int index = 0; index < 5; ++index) clients.push_back(ConnectTo(port_));
  AwaitClosed(clients[3]);
  AwaitClosed(clients[4]);
  EXPECT_EQ(table_->CountOpen(), 3U);
  EXPECT_THAT(Metrics(), HasSubstr("simile_rejected_total{reason=\"connections\"} 2\n"));
}

TEST_F(AcceptorTest, TellsARefusedPeerAndTheLogWhichLimitIsReached) {
  Start({.connections_max = 1'024, .per_peer_max = 1});
  const base::FileDescriptor first = ConnectTo(port_);
  AwaitHandedOver(1);
  for (int turn = 0; turn < 3; ++turn) {
    const std::string reply = ReadAll(ConnectTo(port_));
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 429 Too Many Requests\r\n"));
    EXPECT_THAT(reply,
                EndsWith("\r\n\r\ntoo many connections: this server holds at most 1 from one "
                         "address (limits.connections_per_peer_max)\n"));
  }
  EXPECT_THAT(lines_.str(), HasSubstr("a connection is refused: a limit of connections is reached "
                                      "peer=127.0.0.1 most=\"1 from one address "
                                      "(limits.connections_per_peer_max)\" more_before=0\n"));
  EXPECT_EQ(std::ranges::count(lines_.str(), '\n'), 1) << "one line in ten seconds";
}

TEST_F(AcceptorTest, TellsARefusedPeerThatTheServerIsFull) {
  Start({.connections_max = 1, .per_peer_max = 64});
  const base::FileDescriptor first = ConnectTo(port_);
  AwaitHandedOver(1);
  const std::string reply = ReadAll(ConnectTo(port_));
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(reply, HasSubstr("this server holds at most 1 (limits.connections_max)\n"));
}

TEST_F(AcceptorTest, RefusesConnectionsWhileTooManyHaveNotSpoken) {
  Start({.connections_max = 10, .per_peer_max = 10, .half_open_max = 1});
  const base::FileDescriptor first = ConnectTo(port_);
  AwaitHandedOver(1);
  EXPECT_THAT(ReadAll(ConnectTo(port_)), HasSubstr("(limits.half_open_connections_max)\n"));
  handed_over_.front().place.Open();
  const base::FileDescriptor second = ConnectTo(port_);
  AwaitHandedOver(2);
}

TEST_F(AcceptorTest, SaysWhoseConnectionItIs) {
  Start({});
  const base::FileDescriptor first = ConnectTo(port_);
  AwaitHandedOver(1);
  EXPECT_THAT(handed_over_.front().peer->address, StartsWith("ipv4:127.0.0.1:"));
}

TEST_F(AcceptorTest, AcceptsNewConnectionsWhenOldOnesHaveClosed) {
  Start({.connections_max = 2, .per_peer_max = 2});
  const base::FileDescriptor first = ConnectTo(port_);
  const base::FileDescriptor second = ConnectTo(port_);
  AwaitHandedOver(2);
  CloseHandedOver();
  EXPECT_EQ(table_->CountOpen(), 0U);
  const base::FileDescriptor third = ConnectTo(port_);
  AwaitHandedOver(1);
  EXPECT_EQ(table_->CountOpen(), 1U);
}

TEST_F(AcceptorTest, SurvivesRunningOutOfDescriptors) {
  Start({.connections_max = 1'024, .per_peer_max = 1'024});
  {
    // The clients' sockets exist before every other descriptor is taken, so the clients connect and
    // the server has no descriptor left to accept with.
    std::vector<base::FileDescriptor> clients;
    clients.reserve(3);
    for (int index = 0; index < 3; ++index) {
      clients.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    }
    const ScarceDescriptors descriptors;
    for (const base::FileDescriptor& client : clients) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(port_);
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      ASSERT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
                0);
      AwaitClosed(client);
    }
  }
  const base::FileDescriptor client = ConnectTo(port_);
  AwaitHandedOver(1);
  acceptor_->Stop();
  EXPECT_THAT(Metrics(), HasSubstr("simile_rejected_total{reason=\"descriptors\"} 3\n"));
  EXPECT_THAT(lines_.str(), HasSubstr("no file descriptor is left"));
}

TEST_F(AcceptorTest, RefusesConnectionsAfterStop) {
  Start({});
  acceptor_->Stop();
  acceptor_->Stop();
  EXPECT_FALSE(ConnectTo(port_).valid());
}

}  // namespace
}  // namespace simile::net
