#include "net/connection_table.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>

namespace simile::net {
namespace {

// How many connections an attempt looks at of those whose peers have closed them, and how many of
// the others a refusal looks at.
constexpr std::size_t kClosingLooksMax = 8;
constexpr std::size_t kLooksAtOnce = 4;
constexpr std::chrono::seconds kLookAtAllInterval{1};

// The identity of the socket behind a descriptor; 0 when there is none.
std::uint64_t SocketIdentity(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISSOCK(status.st_mode)) return 0;
  return status.st_ino;
}

}  // namespace

ConnectionTable::ConnectionTable(std::size_t connections_max, std::size_t per_peer_max,
                                 const Clock& clock)
    : connections_max_(connections_max),
      per_peer_max_(per_peer_max),
      clock_(clock),
      peer_closes_(epoll_create1(EPOLL_CLOEXEC)) {}

Admission ConnectionTable::Admit(int fd, const PeerKey& peer) {
  // The kernel reuses a descriptor only after it was closed, so a former entry is stale.
  const auto former = open_.find(fd);
  if (former != open_.end()) Forget(former);
  ForgetClosed();
  if (IsFull(peer)) LookAtOthers();
  if (open_.size() >= connections_max_) return Admission::kFull;
  if (PeerCount(peer) >= per_peer_max_) return Admission::kPeerFull;
  std::size_t& of_peer = by_peer_[peer];  // without memory for one of the two, nothing is counted
  open_[fd] = {SocketIdentity(fd), peer};
  ++of_peer;
  epoll_event event{};
  event.events = EPOLLRDHUP | EPOLLET;  // a reset is always reported
  event.data.fd = fd;
  // If it fails, the connection is only looked at now and then.
  static_cast<void>(epoll_ctl(peer_closes_.get(), EPOLL_CTL_ADD, fd, &event));
  return Admission::kAdmitted;
}

std::size_t ConnectionTable::CountOpen() {
  ForgetClosed();
  LookAtOthers();
  return open_.size();
}

bool ConnectionTable::IsFull(const PeerKey& peer) const {
  return open_.size() >= connections_max_ || PeerCount(peer) >= per_peer_max_;
}

void ConnectionTable::LookAtOthers() {
  const Clock::TimePoint now = clock_.Now();
  if (now < next_look_at_all_) return LookAtSome();
  next_look_at_all_ = now + kLookAtAllInterval;
  LookAtAll();
}

void ConnectionTable::LearnOfClosedPeers() {
  std::array<epoll_event, 64> events;
  const int count =
      epoll_wait(peer_closes_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const int fd = events.at(static_cast<std::size_t>(i)).data.fd;
    const auto connection = open_.find(fd);
    if (connection != open_.end()) {
      closing_.push_back({fd, connection->second.socket_identity});
    }
  }
}

void ConnectionTable::ForgetClosed() {
  LearnOfClosedPeers();
  for (std::size_t looks = std::min(closing_.size(), kClosingLooksMax); looks > 0; --looks) {
    const Closing closing = closing_.front();
    closing_.pop_front();
    const auto connection = open_.find(closing.fd);
    const bool is_counted =
        connection != open_.end() && connection->second.socket_identity == closing.socket_identity;
    if (!is_counted) continue;
    const std::size_t before = open_.size();
    Look(connection);
    if (open_.size() == before) closing_.push_back(closing);  // gRPC has not closed it yet
  }
}

void ConnectionTable::LookAtSome() {
  auto connection = open_.lower_bound(next_look_);
  for (std::size_t i = 0; i < kLooksAtOnce && !open_.empty(); ++i) {
    if (connection == open_.end()) connection = open_.begin();
    connection = Look(connection);
  }
  next_look_ = connection == open_.end() ? 0 : connection->first;
}

void ConnectionTable::LookAtAll() {
  for (auto connection = open_.begin(); connection != open_.end();) connection = Look(connection);
  closing_.clear();  // those that are still open are looked at with all others
}

ConnectionTable::Connections::iterator ConnectionTable::Look(Connections::iterator connection) {
  ++looks_;
  const auto next = std::next(connection);
  if (SocketIdentity(connection->first) != connection->second.socket_identity) Forget(connection);
  return next;
}

void ConnectionTable::Forget(Connections::iterator connection) {
  const auto count = by_peer_.find(connection->second.peer);
  if (--count->second == 0) by_peer_.erase(count);
  open_.erase(connection);
}

std::size_t ConnectionTable::PeerCount(const PeerKey& peer) const {
  const auto count = by_peer_.find(peer);
  return count == by_peer_.end() ? 0 : count->second;
}

}  // namespace simile::net
