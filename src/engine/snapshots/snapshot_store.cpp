#include "engine/snapshots/snapshot_store.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/memory_pages.h"
#include "base/message_text.h"
#include "base/nearest_name.h"

namespace simile::engine {
namespace {

using base::ErrorReason;

// The time after which to ask again for a collection that is loading: most loads end within
// seconds.
constexpr std::chrono::milliseconds kRetryLoading{1'000};

absl::Status DidNotLoad(std::string_view collection) {
  return base::Error(ErrorReason::kCollectionNotLoaded,
                     fmt::format("{} is not served: its folder did not load. The server's log and "
                                 "`simile list` say why",
                                 collection));
}

absl::Status IsLoading(std::string_view collection, const ChangeProgress& progress) {
  return base::WithRetryAfter(
      base::Error(ErrorReason::kCollectionLoading,
                  fmt::format("{} is loading ({:.0f}% done); try again soon", collection,
                              100 * progress.share)),
      kRetryLoading);
}

// "books, films": names in a message, the first ones of many.
std::string FormatFirstNames(std::span<const std::string> names) {
  constexpr std::size_t kNamesMax = 10;
  const auto listed = names.first(std::min(kNamesMax, names.size()));
  std::string text = fmt::format("{}", fmt::join(listed, ", "));
  if (names.size() > listed.size()) {
    text += fmt::format(" and {} more", base::Grouped(names.size() - listed.size()));
  }
  return text;
}

absl::Status ChangeInProgress(const std::string& collection) {
  return base::Error(ErrorReason::kChangeInProgress,
                     fmt::format("{} is being loaded already", collection));
}

}  // namespace

// Outlives the reclaimer while snapshots are held, because every deleter has a reference.
class Reclaimer::State {
 public:
  // REQUIRES: called once, before the state is shared.
  void Start() {
    worker_ = std::thread([this] { Work(); });
  }

  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    wake_.notify_one();
    worker_.join();
  }

  // Makes space for one more snapshot, so that Release never allocates, because a deleter cannot
  // report a failure.
  void ReserveOne() {
    const std::lock_guard lock(mutex_);
    released_.reserve(alive_ + 1);
    ++alive_;
  }

  void Release(const Snapshot* snapshot) {
    std::unique_ptr<const Snapshot> owned(snapshot);
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return;  // the caller frees it, because the worker has ended
      released_.push_back(std::move(owned));
    }
    wake_.notify_one();
  }

  void AwaitReclaimed() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return released_.empty() && !freeing_; });
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stopped_ || !released_.empty(); });
      if (released_.empty()) return;
      std::unique_ptr<const Snapshot> snapshot = std::move(released_.back());
      released_.pop_back();
      --alive_;
      freeing_ = true;
      lock.unlock();
      snapshot.reset();
      base::ReturnFreedMemory();
      lock.lock();
      freeing_ = false;
      if (released_.empty()) idle_.notify_all();
    }
  }

  std::mutex mutex_;  // guards everything below but the thread
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::vector<std::unique_ptr<const Snapshot>> released_;  // capacity >= alive_
  std::size_t alive_ = 0;                                  // adopted and not yet freed
  bool freeing_ = false;
  bool stopped_ = false;
  std::thread worker_;
};

Reclaimer::Reclaimer() : state_(std::make_shared<State>()) { state_->Start(); }

Reclaimer::~Reclaimer() { state_->Stop(); }

SnapshotPtr Reclaimer::Adopt(Snapshot snapshot) {
  state_->ReserveOne();
  return {new Snapshot(std::move(snapshot)),
          [state = state_](const Snapshot* last) { state->Release(last); }};
}

void Reclaimer::AwaitReclaimed() const { state_->AwaitReclaimed(); }

void SnapshotStore::SetListener(Listener listener) { listener_ = std::move(listener); }

absl::StatusOr<SnapshotPtr> SnapshotStore::Pin(std::string_view collection) const {
  const std::lock_guard lock(mutex_);
  DropExpiredLeases();
  const auto slot = slots_.find(collection);
  if (slot == slots_.end()) return UnknownCollection(collection);
  if (slot->second.current == nullptr) return NotServing(collection, slot->second);
  return slot->second.current;
}

absl::StatusOr<SnapshotPtr> SnapshotStore::PinContent(std::string_view collection,
                                                      std::string_view id) const {
  const std::lock_guard lock(mutex_);
  DropExpiredLeases();
  const auto slot = slots_.find(collection);
  if (slot == slots_.end()) return UnknownCollection(collection);
  if (slot->second.current == nullptr) return NotServing(collection, slot->second);
  for (const SnapshotPtr& snapshot : {slot->second.current, slot->second.replaced}) {
    if (snapshot != nullptr && snapshot->id == id) return snapshot;
  }
  return base::Error(
      ErrorReason::kPageSnapshotGone,
      fmt::format(
          "{} no longer has the content of this page token; start again with the first page",
          collection));
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
    list.push_back(ReadStatus(name, slot));
  }
  return list;
}

absl::StatusOr<CollectionStatus> SnapshotStore::Get(std::string_view collection) const {
  const std::lock_guard lock(mutex_);
  const auto slot = slots_.find(collection);
  if (slot == slots_.end()) return UnknownCollection(collection);
  return ReadStatus(slot->first, slot->second);
}

absl::Status SnapshotStore::BeginCreate(const std::string& collection) {
  const std::lock_guard lock(mutex_);
  const auto [slot, inserted] = slots_.try_emplace(collection);
  if (inserted) return absl::OkStatus();
  if (slot->second.state == CollectionState::kFailed) {
    slot->second.state = CollectionState::kLoading;
    slot->second.progress = {};
    return absl::OkStatus();
  }
  if (slot->second.current == nullptr) {
    return ChangeInProgress(collection);
  }
  return base::Error(
      ErrorReason::kCollectionExists,
      fmt::format("collection \"{}\" is served already; reload it, or choose another name",
                  collection));
}

absl::Status SnapshotStore::BeginReplace(const std::string& collection) {
  const std::lock_guard lock(mutex_);
  const auto slot = slots_.find(collection);
  if (slot == slots_.end()) return UnknownCollection(collection);
  if (slot->second.state == CollectionState::kFailed) return DidNotLoad(collection);
  if (slot->second.state != CollectionState::kServing) {
    return ChangeInProgress(collection);
  }
  slot->second.state = CollectionState::kReloading;
  slot->second.progress = {};
  return absl::OkStatus();
}

void SnapshotStore::SetProgress(const std::string& collection, const ChangeProgress& progress) {
  const std::lock_guard lock(mutex_);
  ClaimedSlot(collection).progress = progress;
}

SnapshotStore::Published SnapshotStore::Publish(const std::string& collection, Snapshot snapshot) {
  assert(snapshot.dataset != nullptr);
  Published published;
  {
    const std::lock_guard lock(mutex_);
    Slot& slot = ClaimedSlot(collection);
    snapshot.collection = collection;
    snapshot.version = slot.last_version + 1;
    published.version = snapshot.version;
    published.current =
        reclaimer_.Adopt(std::move(snapshot));  // may throw; nothing has changed yet
    slot.last_version = published.version;
    const Clock::TimePoint leased_until = FindLease(slot, published.current->id);
    published.previous = std::exchange(slot.current, published.current);
    slot.replaced_until = std::exchange(slot.leased_until, leased_until);
    slot.replaced = clock_.Now() < slot.replaced_until ? published.previous : nullptr;
    slot.state = CollectionState::kServing;
    slot.problem = absl::OkStatus();
  }
  if (published.previous == nullptr) NotifyListener(collection);
  return published;
}

void SnapshotStore::AbandonChange(const std::string& collection) {
  const std::lock_guard lock(mutex_);
  Slot& slot = ClaimedSlot(collection);
  if (slot.current != nullptr) {
    slot.state = CollectionState::kServing;
  } else if (!slot.problem.ok()) {
    slot.state = CollectionState::kFailed;
  } else {
    slots_.erase(collection);
  }
}

void SnapshotStore::KeepFailed(const std::string& collection, const absl::Status& problem) {
  const std::lock_guard lock(mutex_);
  const auto [slot, inserted] = slots_.try_emplace(collection);
  if (!inserted && slot->second.state != CollectionState::kFailed) return;
  slot->second.state = CollectionState::kFailed;
  slot->second.problem = problem;
}

absl::StatusOr<SnapshotPtr> SnapshotStore::Remove(const std::string& collection) {
  SnapshotPtr last;
  {
    const std::lock_guard lock(mutex_);
    const auto slot = slots_.find(collection);
    if (slot == slots_.end()) return UnknownCollection(collection);
    const bool is_idle = slot->second.state == CollectionState::kServing ||
                         slot->second.state == CollectionState::kFailed;
    if (!is_idle) {
      return base::Error(
          ErrorReason::kChangeInProgress,
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
    return base::Error(ErrorReason::kCollectionNotFound,
                       fmt::format("no collection \"{}\"; this server has none loaded", collection),
                       "collection");
  }
  std::vector<std::string> names;
  names.reserve(slots_.size());
  for (const auto& [name, slot] : slots_) names.push_back(name);
  const std::string offer = base::DidYouMean(base::NearestName(collection, names));
  return base::Error(ErrorReason::kCollectionNotFound,
                     offer.empty() ? fmt::format("no collection \"{}\"; this server has {}",
                                                 collection, FormatFirstNames(names))
                                   : fmt::format("no collection \"{}\".{}", collection, offer),
                     "collection");
}

Clock::TimePoint SnapshotStore::FindLease(const Slot& slot, std::string_view id) {
  Clock::TimePoint until = Clock::TimePoint::min();
  if (slot.current != nullptr && slot.current->id == id) until = slot.leased_until;
  if (slot.replaced != nullptr && slot.replaced->id == id) {
    until = std::max(until, slot.replaced_until);
  }
  return until;
}

CollectionStatus SnapshotStore::ReadStatus(const std::string& collection, const Slot& slot) {
  CollectionStatus status{collection, slot.state, std::nullopt, slot.current, {}};
  const bool is_claimed =
      slot.state == CollectionState::kLoading || slot.state == CollectionState::kReloading;
  if (is_claimed) status.progress = slot.progress;
  if (slot.state == CollectionState::kFailed) status.problem = slot.problem;
  return status;
}

absl::Status SnapshotStore::NotServing(std::string_view collection, const Slot& slot) {
  return slot.state == CollectionState::kFailed ? DidNotLoad(collection)
                                                : IsLoading(collection, slot.progress);
}

SnapshotStore::Slot& SnapshotStore::ClaimedSlot(const std::string& collection) {
  const auto slot = slots_.find(collection);
  assert(slot != slots_.end() && slot->second.state != CollectionState::kServing);
  return slot->second;
}

// Reads the state under listener_mutex_. So the last call has the state after the last change, in
// whatever order two threads arrive here.
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
