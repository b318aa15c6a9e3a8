#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "net/peer_key.h"

namespace simile::net {

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
    Place(Place&& other) noexcept
        : table_(std::exchange(other.table_, nullptr)),
          peer_(other.peer_),
          is_half_open_(other.is_half_open_) {}
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
  // counted.
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

}  // namespace simile::net
