#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/snapshots/snapshot_store.h"
#include "simulation/outside_world.h"
#include "simulation/sample_contents.h"
#include "simulation/scenarios.h"

namespace simile::simulation {
namespace {

using engine::SnapshotPtr;

// Readers and changers of a snapshot store: which snapshot is current is known to the point.
class Swaps {
 public:
  explicit Swaps(Simulator& simulator) : simulator_(simulator), random_(simulator.random()) {}

  void Run() {
    store_.emplace(clock_);
    store_->SetListener([this](const std::string& name, bool serving) { Listen(name, serving); });
    Create(0);
    std::vector<Thread> threads;
    for (std::uint64_t i = random_.Between(1, 3); i > 0; --i) {
      threads.emplace_back([this] { Read(); });
    }
    for (std::uint64_t i = random_.Between(1, 3); i > 0; --i) {
      threads.emplace_back([this] { Change(); });
    }
    if (random_.OneIn(2)) threads.emplace_back([this] { EndLeases(); });
    for (Thread& thread : threads) thread.join();
    CheckEnd();
  }

 private:
  static constexpr std::size_t kCollections = 2;
  static constexpr std::uint64_t kNever = UINT64_MAX;

  // A snapshot is no longer current after the point at which the change that took its place ended.
  struct Publication {
    std::size_t collection = 0;
    std::uint64_t until = kNever;
    bool freed = false;
  };
  struct Collection {
    std::string name;
    std::vector<std::size_t> publications;  // of publications_, in their order
    std::size_t claims = 0;                 // that are held now
    std::size_t claim_count = 0;            // that were ever taken
    std::size_t removals = 0;               // begun
    bool notified_serving = false;
  };
  static std::string NameOf(std::size_t collection) { return collection == 0 ? "films" : "songs"; }

  void Listen(const std::string& name, bool serving) {
    if (std::exchange(listening_, true)) simulator_.Fail("two calls of the listener overlap");
    simulator_.Point("hears of", "a collection");
    if (simulator_.locks_held() != 1) {  // that of the listener alone
      simulator_.Fail("the listener is called while the store is locked");
    }
    collections_[name == NameOf(0) ? 0 : 1].notified_serving = serving;
    listening_ = false;
  }

  void EnterClaim(Collection& collection) {
    ++collection.claim_count;
    if (++collection.claims > 1) simulator_.Fail("two changes of one collection run at once");
  }

  void Create(std::size_t index) {
    Collection& collection = collections_[index];
    if (!store_->BeginCreate(NameOf(index)).ok()) return;
    EnterClaim(collection);
    FinishChange(index, false);
  }

  SnapshotPtr Replace(std::size_t index) {
    if (!store_->BeginReplace(NameOf(index)).ok()) return nullptr;
    EnterClaim(collections_[index]);
    return FinishChange(index, true);
  }

  // Publishes or gives up what is claimed. Returns what was replaced.
  SnapshotPtr FinishChange(std::size_t index, bool replaces) {
    Collection& collection = collections_[index];
    if (random_.OneIn(2)) simulator_.Pause(2);
    if (random_.OneIn(2)) store_->SetProgress(NameOf(index), {});
    if (random_.OneIn(4)) {
      --collection.claims;
      store_->AbandonChange(NameOf(index));
      return nullptr;
    }
    const std::size_t number = publications_.size();
    publications_.push_back({.collection = index});
    const std::size_t before = collection.publications.empty() ? 0 : collection.publications.back();
    collection.publications.push_back(number);
    ++alive_;
    engine::Snapshot snapshot = MakeGeneration(
        number % kContents, {},
        {static_cast<const void*>(this), [this, number](const void*) { Free(number); }});
    snapshot.id = fmt::format("{}", number);
    --collection.claims;  // Publish ends it
    auto published = store_->Publish(NameOf(index), std::move(snapshot));
    CheckPublished(published, number, before, replaces);
    return std::move(published.previous);
  }

  void CheckPublished(const engine::SnapshotStore::Published& published, std::size_t number,
                      std::size_t before, bool replaces) {
    if (ParseNumber(*published.current) != number) simulator_.Fail("another snapshot is published");
    if (replaces != (published.previous != nullptr)) {
      simulator_.Fail("a reload replaces nothing, or a first load something");
    }
    if (!replaces) return;
    if (ParseNumber(*published.previous) != before) simulator_.Fail("a publication is lost");
    if (published.version != published.previous->version + 1) {
      simulator_.Fail("the version does not grow by one");
    }
    publications_[before].until = simulator_.points();
  }

  void Remove(std::size_t index) {
    Collection& collection = collections_[index];
    const std::size_t claim = collection.claim_count;
    const bool claimed = collection.claims > 0;
    ++collection.removals;
    ++under_way_;
    const auto removed = store_->Remove(NameOf(index));
    --under_way_;
    if (!removed.ok()) return;
    if (claimed && collection.claims > 0 && claim == collection.claim_count) {
      simulator_.Fail("a collection is removed while it is changed");
    }
    publications_[ParseNumber(**removed)].until = simulator_.points();
  }

  void Change() {
    simulator_.NameThread("changer");
    for (std::uint64_t i = random_.Between(1, 4); i > 0; --i) {
      if (random_.OneIn(2)) simulator_.Pause(4);
      const std::size_t index = random_.Below(kCollections);
      switch (random_.Below(6)) {
        case 0:
          Remove(index);
          break;
        case 1:
          AwaitReclaimed(Replace(index));
          break;
        case 2:
          Create(index);
          break;
        default:
          Replace(index);
      }
    }
  }

  // Drops what was replaced, and awaits its end if nobody else had it.
  void AwaitReclaimed(SnapshotPtr replaced) {
    if (replaced == nullptr) return;
    const std::size_t number = ParseNumber(*replaced);
    const bool last = replaced.use_count() == 1;
    replaced = nullptr;
    store_->AwaitReclaimed();
    if (last && !publications_[number].freed) simulator_.Fail("a released snapshot is not freed");
  }

  void EndLeases() {
    simulator_.NameThread("ender of leases");
    simulator_.Pause(8);
    ++lease_ends_;
    ++under_way_;
    store_->EndLeases();
    --under_way_;
  }

  void Read() {
    simulator_.NameThread("reader");
    std::array<std::size_t, kCollections> latest{};
    for (std::uint64_t i = random_.Between(2, 6); i > 0; --i) {
      if (random_.OneIn(2)) simulator_.Pause(4);
      const std::size_t index = random_.Below(kCollections);
      const SnapshotPtr snapshot = Pin(index);
      if (snapshot == nullptr) continue;
      const std::size_t number = ParseNumber(*snapshot);
      if (number < std::exchange(latest[index], number)) {
        simulator_.Fail("a reader sees an earlier snapshot after a later one");
      }
      if (random_.OneIn(2)) ReadPages(index, snapshot);
    }
  }

  SnapshotPtr Pin(std::size_t index) {
    const std::uint64_t began = simulator_.points();
    absl::StatusOr<SnapshotPtr> snapshot = store_->Pin(NameOf(index));
    if (!snapshot.ok()) return nullptr;
    if (*snapshot == nullptr) simulator_.Fail("no snapshot is pinned");
    const Publication& publication = publications_[ParseNumber(**snapshot)];
    if (publication.collection != index) simulator_.Fail("another collection is pinned");
    if (publication.until < began) simulator_.Fail("a snapshot is pinned that was replaced before");
    return *std::move(snapshot);
  }

  // Leases what it reads, and asks for the same content later, as the pages of a list do.
  void ReadPages(std::size_t index, SnapshotPtr snapshot) {
    const Collection& collection = collections_[index];
    const std::string id = snapshot->id;
    const Clock::Duration lease = Simulator::kStep * static_cast<int>(random_.Between(1, 8));
    const bool undisturbed = under_way_ == 0;
    const std::size_t lease_ends = lease_ends_;
    const std::size_t removals = collection.removals;
    const Clock::TimePoint until = simulator_.now() + lease;
    store_->Lease(*snapshot, lease);
    // It was leased while it was current, if it still is.
    const bool leased = undisturbed && Pin(index) == snapshot;
    const std::size_t number = ParseNumber(*snapshot);
    snapshot = nullptr;
    if (random_.OneIn(2)) simulator_.Pause(6);
    const auto page = store_->PinContent(NameOf(index), id);
    if (page.ok()) {
      if (*page == nullptr || (*page)->id != id) simulator_.Fail("a page is of another content");
      return;
    }
    // Kept: nobody ended leases, and at most one snapshot came after it.
    const auto place = std::ranges::find(collection.publications, number);
    const bool kept = collection.publications.end() - place <= 2;
    if (leased && kept && simulator_.now() < until && lease_ends == lease_ends_ &&
        removals == collection.removals) {
      simulator_.Fail("a leased snapshot is gone: " + page.status().ToString());
    }
  }

  static std::size_t ParseNumber(const engine::Snapshot& snapshot) {
    std::size_t number = 0;
    for (const char digit : snapshot.id)
      number = 10 * number + static_cast<std::size_t>(digit - '0');
    return number;
  }

  void Free(std::size_t number) {
    publications_[number].freed = true;
    --alive_;
    if (Simulator::current() == nullptr || simulator_.running() == nullptr) return;
    if (simulator_.locks_held() != 0) simulator_.Fail("a snapshot is freed while a lock is held");
    if (simulator_.running_name() != "thread 1") {  // the reclaimer's is the first that is started
      simulator_.Fail("a snapshot is freed by the thread that dropped it");
    }
  }

  void CheckEnd() {
    std::size_t serving = 0;
    for (std::size_t index = 0; index < kCollections; ++index) {
      const auto status = store_->Get(NameOf(index));
      if (status.ok() && status->state != engine::CollectionState::kServing) {
        simulator_.Fail("a claim has no end");
      }
      if (status.ok() != collections_[index].notified_serving) {
        simulator_.Fail("the listener heard last what is no longer so");
      }
      if (status.ok()) ++serving;
    }
    store_->EndLeases();
    store_->AwaitReclaimed();
    if (alive_ != serving) {
      simulator_.Fail(fmt::format("{} snapshots are alive and {} are served", alive_, serving));
    }
    store_.reset();
    if (alive_ != 0) simulator_.Fail("a snapshot is alive after the store's end");
  }

  Simulator& simulator_;
  Random& random_;
  const SimulatedClock clock_;
  std::deque<Publication> publications_;  // by number, which is their id
  std::array<Collection, kCollections> collections_;
  std::size_t alive_ = 0;
  std::size_t lease_ends_ = 0;  // begun
  int under_way_ = 0;           // removals and ends of leases
  bool listening_ = false;
  std::optional<engine::SnapshotStore> store_;
};

}  // namespace

void RunSwaps(Simulator& simulator) { Swaps(simulator).Run(); }

}  // namespace simile::simulation
