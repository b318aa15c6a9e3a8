#pragma once

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "net/event_loop.h"
#include "net/token_bucket.h"
#include "simile/clock.h"
#include "simile/limits.h"

namespace simile::net {

// The origin of a connection, for limits: an IPv4 address, or the network of an IPv6 address, since
// one host commonly owns a whole /64. An IPv4 address mapped into IPv6 equals the plain one.
class PeerKey {
 public:
  static constexpr unsigned kIpv6Bits = 128;  // of an address

  //   ipv6_bits  Limits::ipv6_peer_bits. REQUIRES: at most kIpv6Bits.
  static PeerKey Of(const sockaddr_storage& address, unsigned ipv6_bits);
  friend auto operator<=>(const PeerKey&, const PeerKey&) = default;
  // Equal for equal keys. Valid as long as this object.
  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  std::array<std::uint8_t, 1 + kIpv6Bits / 8> bytes_{};  // family, then the bytes of the address
};

// Who is at the other end of a connection.
struct Peer {
  PeerKey key;
  std::string address{};  // as gRPC writes it: "ipv4:10.0.0.7:51234", "ipv6:[2001:db8::7]:80"
  // See ByteStream::VerifiedNames.
  std::vector<std::string> certificate_names{};
};

// What the connections of one peer share, so that it gains nothing by opening more of them. Safe to
// use from any thread.
//
// Two budgets bound what a peer has begun to send. kMessages counts messages that arrive or wait
// for their handler, by their declared length. When kMessages is full, a message waits for space:
// its window does not grow, and its bytes that still arrive count in kWaiting. When kWaiting is
// full, too, the call is refused.
class PeerBudget : public std::enable_shared_from_this<PeerBudget> {
 public:
  enum class Kind : std::uint8_t { kMessages, kWaiting };

  // Bytes that are counted as long as this exists.
  class Part {
   public:
    Part() = default;
    Part(Part&& other) noexcept { *this = std::move(other); }
    Part& operator=(Part&& other) noexcept {
      Release();
      of_ = std::move(other.of_);
      kind_ = other.kind_;
      bytes_ = std::exchange(other.bytes_, 0);
      return *this;
    }
    ~Part() { Release(); }
    void Release() { Release(bytes_); }
    // REQUIRES: no more than it counts
    void Release(std::uint64_t bytes);
    std::uint64_t bytes() const { return bytes_; }

   private:
    friend class PeerBudget;
    std::shared_ptr<PeerBudget> of_;
    Kind kind_ = Kind::kMessages;
    std::uint64_t bytes_ = 0;
  };

  //   clock  borrowed
  PeerBudget(const Limits& limits, const Clock& clock);

  // Counts bytes in the budget and in the part. False, and counts nothing, when the budget has no
  // space for them. While calls wait for kMessages, only the task that waits first gets space.
  //   task  the task that waits for this space; null when none does
  bool Hold(std::uint64_t bytes, Kind kind, Part& part, const EventLoop::Task* task = nullptr);

  // Has the task wait for space in kMessages. It is posted when it is the first task that waits and
  // there may be space. Hold must be tried once more after Await. May throw bad_alloc.
  void Await(EventLoop& loop, EventLoop::Task& task);
  void StopAwaiting(const EventLoop::Task& task);
  // Whether any call waits for space.
  bool is_awaited() const { return is_awaited_.load(std::memory_order_relaxed); }

  // Counts the reset of a call that was begun. False when the peer resets calls too often.
  bool CountReset();
  // Counts a DATA frame that carries nothing. False when the peer sends such frames too often.
  bool CountEmptyFrame();
  // Counts an answer to a call: the peer may reset one more call.
  void CountAnswer();
  // Whether the budget is as at the start: it counts nothing, and its rates are full.
  bool IsUnused();

 private:
  struct Waiter {
    EventLoop* loop;
    EventLoop::Task* task;
  };

  std::atomic<std::uint64_t>& HeldOf(Kind kind) {
    return kind == Kind::kMessages ? held_ : held_waiting_;
  }
  bool HasOtherWaiters(const EventLoop::Task* task);
  void Release(std::uint64_t bytes, Kind kind);
  void NotifyFirst();  // REQUIRES: mutex_ is held

  const std::uint64_t bytes_max_;
  const Clock& clock_;
  std::atomic<std::uint64_t> held_ = 0;
  std::atomic<std::uint64_t> held_waiting_ = 0;
  std::atomic<bool> is_awaited_ = false;
  std::atomic<bool> has_resets_ = false;  // resets_ is not full
  std::mutex mutex_;                      // guards the members below
  std::vector<Waiter> waiters_;           // in the order in which they came
  TokenBucket resets_;
  TokenBucket empty_frames_;
};

// The budgets of all peers. A peer's budget is kept after its last connection until it is as at the
// start. Otherwise a peer would get a fresh budget by reconnecting. Safe to use from any thread.
class PeerBudgets {
 public:
  //   limits, clock  borrowed
  PeerBudgets(const Limits& limits, const Clock& clock);

  // Returns the budget of the peer, a new one at first. May throw bad_alloc.
  std::shared_ptr<PeerBudget> Of(const PeerKey& peer);

 private:
  void ForgetUnused();

  const Limits& limits_;
  const Clock& clock_;
  std::mutex mutex_;  // guards what follows
  std::map<PeerKey, std::shared_ptr<PeerBudget>> budgets_;
  std::size_t next_sweep_;  // at this number of budgets the unused ones are forgotten
};

enum class Admission : std::uint8_t { kAdmitted, kFull, kPeerFull, kHalfOpenFull };

// Counts the open connections, the connections of each peer, and the connections that have not
// spoken HTTP/2 yet. Safe to use from any thread.
class ConnectionTable {
 public:
  struct Options {
    std::size_t connections_max = 1'024;
    std::size_t per_peer_max = 64;
    std::size_t half_open_max = 256;
  };

  // A connection is counted as long as this exists. The table must outlive it.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept { *this = std::move(other); }
    Place& operator=(Place&& other) noexcept {
      std::swap(table_, other.table_);
      std::swap(peer_, other.peer_);
      std::swap(is_half_open_, other.is_half_open_);
      return *this;
    }
    ~Place() {
      if (table_ != nullptr) table_->Leave(peer_, is_half_open_);
    }
    // The peer has spoken HTTP/2.
    void Open() {
      if (table_ != nullptr && std::exchange(is_half_open_, false)) table_->Open();
    }

   private:
    friend class ConnectionTable;
    ConnectionTable* table_ = nullptr;
    PeerKey peer_;
    bool is_half_open_ = true;
  };

  explicit ConnectionTable(const Options& options) : options_(options) {}

  // Counts a connection, unless that would exceed a limit. May throw bad_alloc; then it is not
  // counted. REQUIRES: the place counts no other connection.
  Admission Admit(const PeerKey& peer, Place& place);
  std::size_t CountOpen() const;
  const Options& options() const { return options_; }

 private:
  void Open();
  void Leave(const PeerKey& peer, bool is_half_open);

  const Options options_;
  mutable std::mutex mutex_;  // guards the members below
  std::size_t open_ = 0;
  std::size_t half_open_ = 0;
  std::map<PeerKey, std::size_t> by_peer_;
};

// A connected, non-blocking socket that the table has admitted.
struct AdmittedSocket {
  base::FileDescriptor fd;
  std::shared_ptr<Peer> peer;
  ConnectionTable::Place place;
};

}  // namespace simile::net
