#include "net/connection_table.h"

namespace simile::net {

Admission ConnectionTable::Admit(const PeerKey& peer, Place& place) {
  Place admitted;
  {
    const std::lock_guard lock(mutex_);
    if (open_ >= options_.connections_max) return Admission::kFull;
    if (half_open_ >= options_.half_open_max) return Admission::kHalfOpenFull;
    std::size_t& of_peer = by_peer_[peer];
    if (of_peer >= options_.per_peer_max) return Admission::kPeerFull;
    ++of_peer;
    ++open_;
    ++half_open_;
    admitted.table_ = this;
    admitted.peer_ = peer;
  }
  place = std::move(admitted);
  return Admission::kAdmitted;
}

std::size_t ConnectionTable::CountOpen() const {
  const std::lock_guard lock(mutex_);
  return open_;
}

void ConnectionTable::Open() {
  const std::lock_guard lock(mutex_);
  --half_open_;
}

void ConnectionTable::Leave(const PeerKey& peer, bool is_half_open) {
  const std::lock_guard lock(mutex_);
  --open_;
  if (is_half_open) --half_open_;
  const auto found = by_peer_.find(peer);
  if (--found->second == 0) by_peer_.erase(found);
}

}  // namespace simile::net
