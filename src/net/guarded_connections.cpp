#include "net/guarded_connections.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "base/error_detail.h"
#include "net/peer_budgets.h"
#include "net/token_bucket.h"

namespace simile::net {
namespace {

constexpr Pace kLines{10, 10};  // of connections that are cut

}  // namespace

// What the connections of one server share. They may outlive it: gRPC closes some sockets after its
// server is gone.
class GuardedConnections::State {
 public:
  State(const FrameGuard::Options& guard_options, std::uint64_t unfinished_bytes_max,
        const Parts& given)
      : options(guard_options),
        parts(given),
        budgets(unfinished_bytes_max, given.clock),
        lines_(kLines, given.clock.Now()) {}

  void ReportCut(Violation violation);
  void Keep(int fd, std::shared_ptr<GuardedConnection> connection);
  void Forget(int fd);
  void EndAll();

  const FrameGuard::Options options;
  const Parts parts;  // not used once EndAll has returned
  PeerBudgets budgets;

 private:
  std::mutex mutex_;  // guards what follows
  std::map<int, std::shared_ptr<GuardedConnection>> open_;
  TokenBucket lines_;
  std::uint64_t lines_left_out_ = 0;
};

// One connection: its guard, and its socket while that is open.
class GuardedConnection {
 public:
  enum class Carrier : std::uint8_t { kSocket, kTls };
  using State = GuardedConnections::State;

  GuardedConnection(int fd, const PeerKey& peer, std::shared_ptr<State> state)
      : state_(std::move(state)), fd_(fd) {
    guard_.emplace(state_->options, state_->budgets.Of(peer), state_->parts.clock);
  }

  // False when the connection is cut, now or before.
  bool Received(Carrier carrier, const iovec* pieces, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (cut_) return false;
    if (!guard_ || carrier != carrier_) return true;
    const Violation violation = EachPiece(
        pieces, bytes, [this](std::span<std::uint8_t> piece) { return guard_->Received(piece); });
    const std::uint32_t refused = guard_->ConsumeRefusedCount();
    for (std::uint32_t i = 0; i < refused; ++i) {
      state_->parts.metrics.CountRejected(observe::Rejection::kUnfinishedBodies);
    }
    if (violation != Violation::kNone) Cut(violation);
    return !cut_;
  }
  void Sent(Carrier carrier, const iovec* pieces, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (cut_ || !guard_ || carrier != carrier_) return;
    const Violation violation = EachPiece(
        pieces, bytes, [this](std::span<std::uint8_t> piece) { return guard_->Sent(piece); });
    if (violation != Violation::kNone) Cut(violation);
  }
  void CarryOverTls() {
    const std::lock_guard lock(mutex_);
    carrier_ = Carrier::kTls;
  }
  void Closing(int fd) {
    {
      const std::lock_guard lock(mutex_);
      fd_ = -1;
    }
    state_->Forget(fd);
  }
  bool is_cut() const {
    const std::lock_guard lock(mutex_);
    return cut_;
  }
  // From now on it is not guarded.
  void End() {
    const std::lock_guard lock(mutex_);
    guard_.reset();
  }

 private:
  // The guard needs memory for calls that begin; where there is none the connection is cut.
  template <class Look>
  static Violation EachPiece(const iovec* pieces, std::size_t bytes, const Look& look) {
    try {
      for (; bytes > 0; ++pieces) {
        const std::size_t length = std::min(pieces->iov_len, bytes);
        const Violation violation = look({static_cast<std::uint8_t*>(pieces->iov_base), length});
        if (violation != Violation::kNone) return violation;
        bytes -= length;
      }
      return Violation::kNone;
    } catch (const std::bad_alloc&) {
      return Violation::kStreams;
    }
  }

  // gRPC sees an error, and the peer a reset when gRPC closes the socket.
  void Cut(Violation violation) {
    cut_ = true;
    guard_.reset();
    state_->ReportCut(violation);
    if (fd_ < 0) return;
    const linger at_once{1, 0};
    static_cast<void>(setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
    static_cast<void>(shutdown(fd_, SHUT_RDWR));
  }

  const std::shared_ptr<State> state_;
  mutable std::mutex mutex_;  // guards what follows
  int fd_;                    // -1 once it is closed
  Carrier carrier_ = Carrier::kSocket;
  std::optional<FrameGuard> guard_;  // until it is cut, or its server is gone
  bool cut_ = false;
};

namespace {

// All guarded connections of the process, by descriptor: the functions that gRPC calls are given
// nothing else. A descriptor that is not guarded costs two loads.
class GuardedDescriptors {
 public:
  std::shared_ptr<GuardedConnection> Find(int fd) {
    Block* const block = BlockOf(fd);
    if (block == nullptr) return nullptr;
    const std::size_t index = IndexOf(fd);
    if (!block->guarded.at(index).load(std::memory_order_acquire)) return nullptr;
    const std::lock_guard lock(block->mutex);
    return block->connections.at(index);
  }
  void Set(int fd, std::shared_ptr<GuardedConnection> connection) {
    Block& block = MakeBlockOf(fd);
    const std::lock_guard lock(block.mutex);
    block.guarded.at(IndexOf(fd)).store(connection != nullptr, std::memory_order_release);
    block.connections.at(IndexOf(fd)).swap(connection);
  }

 private:
  static constexpr std::size_t kBlockSize = 1'024;
  struct Block {
    std::array<std::atomic<bool>, kBlockSize> guarded{};
    std::mutex mutex;  // guards connections
    std::array<std::shared_ptr<GuardedConnection>, kBlockSize> connections;
  };

  static std::size_t IndexOf(int fd) { return static_cast<std::size_t>(fd) % kBlockSize; }
  Block* BlockOf(int fd) {
    const std::size_t number = static_cast<std::size_t>(fd) / kBlockSize;
    return fd < 0 || number >= blocks_.size() ? nullptr
                                              : blocks_.at(number).load(std::memory_order_acquire);
  }
  // Blocks stay for the life of the process.
  Block& MakeBlockOf(int fd) {
    std::atomic<Block*>& place = blocks_.at(static_cast<std::size_t>(fd) / kBlockSize);
    Block* existing = place.load(std::memory_order_acquire);
    if (existing != nullptr) return *existing;
    auto made = std::make_unique<Block>();
    if (!place.compare_exchange_strong(existing, made.get())) return *existing;
    return *made.release();
  }

  // Up to 1,048,576 descriptors, Linux's own default limit.
  std::array<std::atomic<Block*>, 1'024> blocks_{};
};

// Destroyed never: descriptors are closed until the process ends.
GuardedDescriptors& Descriptors() {
  static auto* const descriptors = new GuardedDescriptors;
  return *descriptors;
}

thread_local std::shared_ptr<GuardedConnection> handing_over;

}  // namespace

void GuardedConnections::State::ReportCut(Violation violation) {
  parts.metrics.CountRejected(observe::Rejection::kFrameGuard);
  std::uint64_t left_out = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!lines_.Spend(parts.clock)) {
      ++lines_left_out_;
      return;
    }
    left_out = std::exchange(lines_left_out_, 0);
  }
  try {
    parts.log.Warn("connection cut: the peer " + std::string(TextOf(violation)),
                   {{"cut_without_a_line", left_out}});
  } catch (const std::bad_alloc&) {  // gRPC, which reads the socket, expects no exception
    const std::lock_guard lock(mutex_);
    lines_left_out_ += left_out + 1;
  }
}

void GuardedConnections::State::Keep(int fd, std::shared_ptr<GuardedConnection> connection) {
  const std::lock_guard lock(mutex_);
  open_[fd] = std::move(connection);
}

void GuardedConnections::State::Forget(int fd) {
  const std::lock_guard lock(mutex_);
  open_.erase(fd);
}

void GuardedConnections::State::EndAll() {
  std::map<int, std::shared_ptr<GuardedConnection>> open;
  {
    const std::lock_guard lock(mutex_);
    open = open_;
  }
  for (const auto& [fd, connection] : open) connection->End();
}

GuardedConnections::GuardedConnections(const FrameGuard::Options& options,
                                       std::uint64_t unfinished_bytes_max, const Parts& parts)
    : state_(std::make_shared<State>(options, unfinished_bytes_max, parts)) {}

GuardedConnections::~GuardedConnections() { state_->EndAll(); }

absl::Status GuardedConnections::HandOver(int fd, const PeerKey& peer,
                                          absl::FunctionRef<void()> take_over) {
  try {
    auto connection = std::make_shared<GuardedConnection>(fd, peer, state_);
    state_->Keep(fd, connection);
    Descriptors().Set(fd, connection);
    handing_over = std::move(connection);
  } catch (const std::bad_alloc&) {
    state_->Forget(fd);
    return base::OutOfMemory();
  }
  take_over();
  handing_over = nullptr;
  return absl::OkStatus();
}

namespace guarded_sockets {

bool Received(int fd, const iovec* pieces, std::size_t bytes) {
  const auto connection = Descriptors().Find(fd);
  return connection == nullptr ||
         connection->Received(GuardedConnection::Carrier::kSocket, pieces, bytes);
}

void Sent(int fd, const iovec* pieces, std::size_t bytes) {
  const auto connection = Descriptors().Find(fd);
  if (connection == nullptr) return;
  connection->Sent(GuardedConnection::Carrier::kSocket, pieces, bytes);
}

void Closing(int fd) {
  const auto connection = Descriptors().Find(fd);
  if (connection == nullptr) return;
  Descriptors().Set(fd, nullptr);
  connection->Closing(fd);
}

std::shared_ptr<GuardedConnection> TakeForTls() {
  if (handing_over != nullptr) handing_over->CarryOverTls();
  return std::exchange(handing_over, nullptr);
}

bool ReceivedOverTls(GuardedConnection& connection, void* bytes, std::size_t count) {
  const iovec piece{bytes, count};
  return connection.Received(GuardedConnection::Carrier::kTls, &piece, count);
}

bool IsCut(const GuardedConnection& connection) { return connection.is_cut(); }

void SentOverTls(GuardedConnection& connection, const void* bytes, std::size_t count) {
  const iovec piece{const_cast<void*>(bytes), count};
  connection.Sent(GuardedConnection::Carrier::kTls, &piece, count);
}

}  // namespace guarded_sockets
}  // namespace simile::net
