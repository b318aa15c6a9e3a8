#include "engine/snapshots/snapshot_store.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "base/nearest_name.h"

namespace simile::engine {

void SnapshotStore::SetListener(Listener listener) { listener_ = std::move(listener); }

absl::StatusOr<SnapshotPtr> SnapshotStore::Pin(std::string_view collection) const {
  const std::lock_guard lock(mutex_);
  DropExpiredLeases();
  const auto slot = slots_.find(collection);
  if (slot == slots_.end()) return UnknownCollection(collection);
  if (slot->second.current == nullptr) {
    return absl::FailedPreconditionError(fmt::format("{} is loading ({:.0f}% done); try again soon",
                                                     collection, 100 * slot->second.progress));
  }
  return slot->second.current;
}

absl::StatusOr<SnapshotPtr> SnapshotStore::PinVersion(
    std::string_view collection, std::uint64_t version,
    std::chrono::system_clock::time_point loaded_at) const {
  const std::lock_guard lock(mutex_);
  DropExpiredLeases();
  const auto slot = slots_.find(collection);
  if (slot == slots_.end()) return UnknownCollection(collection);
  for (const SnapshotPtr& snapshot : {slot->second.current, slot->second.replaced}) {
    if (snapshot == nullptr || snapshot->version != version) continue;
    if (snapshot->loaded_at == loaded_at) return snapshot;
  }
  return absl::AbortedError(fmt::format("version {} of {} is gone; start again with the first page",
                                        version, collection));
}

void SnapshotStore::Lease(const Snapshot& snapshot, Clock::Duration duration) {
  const std::lock_guard lock(mutex_);
  const auto found = slots_.find(snapshot.collection);
  if (found == slots_.end()) return;
  Slot& slot = found->second;
  const Clock::TimePoint until = clock_.Now() + duration;
  if (slot.current.get() == &snapshot) slot.leased_until = std::max(slot.leased_until, until);
  if (slot.replaced.get() == &snapshot) slot.replaced_until = std::max(slot.replaced_until, until);
}

void SnapshotStore::EndLeases() {
  const std::lock_guard lock(mutex_);
  for (auto& [name, slot] : slots_) slot.replaced = nullptr;
}

void SnapshotStore::DropExpiredLeases() const {
  for (auto& [name, slot] : slots_) {
    if (slot.replaced != nullptr && clock_.Now() >= slot.replaced_until) slot.replaced = nullptr;
  }
}

std::vector<CollectionStatus> SnapshotStore::List() const {
  std::vector<CollectionStatus> list;
  const std::lock_guard lock(mutex_);
  DropExpiredLeases();
  list.reserve(slots_.size());
  for (const auto& [name, slot] : slots_) {
    list.push_back({name, slot.state, slot.progress, slot.current});
  }
  return list;
}

absl::StatusOr<CollectionStatus> SnapshotStore::Get(std::string_view collection) const {
  const std::lock_guard lock(mutex_);
  const auto slot = slots_.find(collection);
  if (slot == slots_.end()) return UnknownCollection(collection);
  return CollectionStatus{slot->first, slot->second.state, slot->second.progress,
                          slot->second.current};
}

absl::Status SnapshotStore::BeginCreate(const std::string& collection) {
  const std::lock_guard lock(mutex_);
  const auto [slot, inserted] = slots_.try_emplace(collection);
  if (inserted) return absl::OkStatus();
  if (slot->second.current == nullptr) {
    return absl::AbortedError(fmt::format("{} is being loaded already", collection));
  }
  return absl::AlreadyExistsError(fmt::format(
      "collection \"{}\" is served already; reload it, or choose another name", collection));
}

absl::Status SnapshotStore::BeginReplace(const std::string& collection) {
  const std::lock_guard lock(mutex_);
  const auto slot = slots_.find(collection);
  if (slot == slots_.end()) return UnknownCollection(collection);
  if (slot->second.state != CollectionState::kServing) {
    return absl::AbortedError(fmt::format("{} is being loaded already", collection));
  }
  slot->second.state = CollectionState::kReloading;
  slot->second.progress = 0;
  return absl::OkStatus();
}

void SnapshotStore::SetProgress(const std::string& collection, double fraction) {
  const std::lock_guard lock(mutex_);
  ClaimedSlot(collection).progress = std::clamp(fraction, 0.0, 1.0);
}

SnapshotStore::Published SnapshotStore::Publish(const std::string& collection, Snapshot snapshot) {
  assert(snapshot.dataset != nullptr);
  Published published;
  {
    const std::lock_guard lock(mutex_);
    Slot& slot = ClaimedSlot(collection);
    snapshot.collection = collection;
    snapshot.version = ++slot.last_version;
    published.version = snapshot.version;
    published.current = reclaimer_.Adopt(std::move(snapshot));
    published.previous = std::exchange(slot.current, published.current);
    slot.replaced_until = std::exchange(slot.leased_until, Clock::TimePoint::min());
    slot.replaced = clock_.Now() < slot.replaced_until ? published.previous : nullptr;
    slot.state = CollectionState::kServing;
    slot.progress = 1;
  }
  if (published.previous == nullptr) NotifyListener(collection);
  return published;
}

void SnapshotStore::AbandonChange(const std::string& collection) {
  const std::lock_guard lock(mutex_);
  Slot& slot = ClaimedSlot(collection);
  if (slot.current == nullptr) {
    slots_.erase(collection);
    return;
  }
  slot.state = CollectionState::kServing;
  slot.progress = 1;
}

absl::StatusOr<SnapshotPtr> SnapshotStore::Remove(const std::string& collection) {
  SnapshotPtr last;
  {
    const std::lock_guard lock(mutex_);
    const auto slot = slots_.find(collection);
    if (slot == slots_.end()) return UnknownCollection(collection);
    if (slot->second.state != CollectionState::kServing) {
      return absl::AbortedError(
          fmt::format("{} is being loaded; unload it when that is over", collection));
    }
    last = std::move(slot->second.current);
    slots_.erase(slot);
  }
  NotifyListener(collection);
  return last;
}

absl::Status SnapshotStore::UnknownCollection(std::string_view collection) const {
  if (slots_.empty()) {
    return absl::NotFoundError(
        fmt::format("no collection \"{}\"; this server has none loaded", collection));
  }
  std::vector<std::string> names;
  names.reserve(slots_.size());
  for (const auto& [name, slot] : slots_) names.push_back(name);
  const std::string offer = base::DidYouMean(base::NearestName(collection, names));
  return absl::NotFoundError(
      fmt::format("no collection \"{}\"{}{}", collection, offer.empty() ? "" : ".", offer));
}

SnapshotStore::Slot& SnapshotStore::ClaimedSlot(const std::string& collection) {
  const auto slot = slots_.find(collection);
  assert(slot != slots_.end() && slot->second.state != CollectionState::kServing);
  return slot->second;
}

// Reads the state under listener_mutex_: the last call then has the state after the last change,
// in whatever order two changing threads arrive here.
void SnapshotStore::NotifyListener(const std::string& collection) {
  if (!listener_) return;
  const std::lock_guard notifying(listener_mutex_);
  bool serving = false;
  {
    const std::lock_guard lock(mutex_);
    const auto slot = slots_.find(collection);
    serving = slot != slots_.end() && slot->second.current != nullptr;
  }
  listener_(collection, serving);
}

}  // namespace simile::engine
