#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "engine/fake_backend.h"
#include "engine/snapshots/change_queue.h"
#include "engine/snapshots/publisher.h"
#include "engine/snapshots/snapshot_store.h"
#include "simulation/outside_world.h"
#include "simulation/sample_contents.h"
#include "simulation/scenarios.h"

namespace simile::simulation {
namespace {

using base::ErrorReason;
using engine::Publisher;
using engine::SnapshotPtr;

// Changes of every kind through the queue of changes and beside it, while readers hold what was
// served before and memory is short.
class Loads {
 public:
  explicit Loads(Simulator& simulator) : simulator_(simulator), random_(simulator.random()) {}

  void Run() {
    Start();
    for (std::size_t i = 0; i < names_; ++i) {
      if (!random_.OneIn(4)) Load(kNames[i], false);
    }
    std::vector<Thread> threads;
    for (std::uint64_t i = random_.Between(1, 3); i > 0; --i) {
      threads.emplace_back([this] { SubmitChanges(); });
    }
    for (std::uint64_t i = random_.Between(0, 3); i > 0; --i) {
      threads.emplace_back([this] { ChangeDirectly(); });
    }
    for (std::uint64_t i = random_.Between(0, 2); i > 0; --i) {
      threads.emplace_back([this] { Read(); });
    }
    if (random_.OneIn(2)) simulator_.Pause(40);
    if (random_.OneIn(2)) Stop();
    for (Thread& thread : threads) thread.join();
    Stop();
    CheckEnd();
  }

 private:
  static constexpr std::array<const char*, 3> kNames = {"films", "songs", "books"};

  struct Queued {
    bool accepted = false;
    bool refused = false;
    int runs = 0;
    int abandoned = 0;
    const SimulatedThread* submitter = nullptr;
  };
  void Start() {
    // An index takes nearly all of a generation; what is left over is for the rest.
    backend_.plan = {.host_bytes = kGenerationBytes};
    generations_max_ = random_.Between(2, 4);
    names_ = random_.OneIn(2) ? 1 : random_.Between(2, kNames.size());
    contents_ = random_.OneIn(2) ? 2 : random_.Between(3, kContents);
    const std::uint64_t limit = generations_max_ * kGenerationBytes + kGenerationBytes / 4;
    Publisher::Options options;
    if (random_.OneIn(2)) {
      options.memory_bytes_max = limit;
    } else {
      options.read_memory = [this, limit]() -> absl::StatusOr<engine::HostMemory> {
        const std::uint64_t used = CountedGeneration::alive() * kGenerationBytes;
        if (random_.OneIn(4)) simulator_.Pause(4);
        return engine::HostMemory{(limit - std::min(limit, used)) * 10 / 9 + 10, "available"};
      };
    }
    store_.emplace(clock_);
    publisher_.emplace(std::move(options), backend_, *store_, clock_);
    waiting_max_ = random_.Between(1, 2);
    queue_.emplace(waiting_max_);
    simulator_.SetIdleCheck([this] { return CheckMemory(); });
  }

  void SubmitChanges() {
    simulator_.NameThread("submitter");
    for (std::uint64_t i = random_.Between(1, 4); i > 0; --i) {
      if (random_.OneIn(2)) simulator_.Pause(8);
      const std::size_t number = queued_.size();
      queued_.push_back({.submitter = simulator_.running()});
      const bool after_stop = stopped_;
      const absl::Status status = queue_->Submit([this, number] { RunQueued(number); },
                                                 [this, number] { Abandon(number); });
      (status.ok() ? queued_[number].accepted : queued_[number].refused) = true;
      if (status.ok() && after_stop) simulator_.Fail("a change is taken after the stop");
      const std::string wrong = CheckWaiting();
      if (!wrong.empty()) simulator_.Fail(wrong);
    }
  }

  std::string CheckWaiting() const {
    const auto waiting =
        static_cast<std::size_t>(std::ranges::count_if(queued_, [](const Queued& change) {
          return change.accepted && change.runs + change.abandoned == 0;
        }));
    // One may be taken and not begun.
    if (waiting <= waiting_max_ + (changing_ ? 0 : 1)) return {};
    return fmt::format("{} changes wait and {} may", waiting, waiting_max_);
  }

  void RunQueued(std::size_t number) {
    simulator_.NameThread("queue of changes");
    Queued& change = queued_[number];
    ++change.runs;
    if (stopped_) simulator_.Fail("a change runs after the stop");
    if (std::exchange(changing_, true)) simulator_.Fail("two queued changes run at once");
    for (std::size_t later = number + 1; later < queued_.size(); ++later) {
      if (queued_[later].submitter == change.submitter && queued_[later].runs > 0) {
        simulator_.Fail("a change runs before an earlier one");
      }
    }
    Change();
    changing_ = false;
  }

  void Abandon(std::size_t number) {
    ++queued_[number].abandoned;
    if (!stopping_) simulator_.Fail("a change is abandoned before the stop");
  }

  void ChangeDirectly() {
    simulator_.NameThread("loader");
    for (std::uint64_t i = random_.Between(1, 3); i > 0; --i) {
      if (random_.OneIn(2)) simulator_.Pause(8);
      Change();
    }
  }

  void Change() {
    const std::string name = kNames[random_.Below(names_)];
    switch (random_.Below(12)) {
      case 0:
        static_cast<void>(store_->Remove(name));
        return;
      case 1:
        return Restore(name);
      case 2:
      case 3:
        return Load(name, false);
      default:
        return Load(name, true);
    }
  }

  void Load(const std::string& name, bool replaces) {
    Publisher::Change change;
    change.collection = name;
    change.folder = random_.OneIn(5) ? "bad" : FormatId(random_.Below(contents_));
    if (replaces && random_.OneIn(8)) change.required_id = FormatId(random_.Below(contents_));
    // Nobody else can change it while the change reports.
    std::string served_id;
    change.progress = [&](const engine::ChangeProgress&) {
      const auto served = store_->Pin(name);
      served_id = served.ok() ? (*served)->id : "";
    };
    // Upper bound, in generations, of what is in memory or reserved at any time during this load:
    // what is alive now, and two for each other load (one reserved, one built).
    const std::uint64_t held_max = CountedGeneration::alive() + 2 * (begun_ - ended_);
    const std::uint64_t begun = ++begun_;
    const auto loaded = replaces ? publisher_->Replace(change) : publisher_->Create(change);
    ++ended_;
    const bool fits = held_max + 2 * (begun_ - begun) < generations_max_;
    if (const std::string wrong = CheckMemory(); !wrong.empty()) simulator_.Fail(wrong);
    if (!loaded.ok()) {
      const std::string wrong = CheckError(loaded.status(), change, fits);
      if (!wrong.empty()) simulator_.Fail(wrong);
      return;
    }
    const engine::Snapshot& snapshot = *loaded->snapshot;
    if (snapshot.id != change.folder || snapshot.dataset->content_id != snapshot.id) {
      simulator_.Fail("a load publishes another content");
    }
    if (loaded->published == (served_id == snapshot.id)) {
      simulator_.Fail(loaded->published ? "a content is published that is served"
                                        : "a content is not published, and another is served");
    }
  }

  //   fits  there was memory for one more generation all the time
  static std::string CheckError(const absl::Status& error, const Publisher::Change& change,
                                bool fits) {
    switch (base::ReasonOf(error)) {
      case ErrorReason::kCollectionExists:
      case ErrorReason::kCollectionNotFound:
      case ErrorReason::kChangeInProgress:
        return {};
      case ErrorReason::kDoesNotFit:
        return fits ? "a load that fits is refused" : "";
      case ErrorReason::kInvalidFiles:
        return change.folder == "bad" ? "" : "a good folder is refused";
      case ErrorReason::kNothingToRollBack:
        return change.required_id.empty() ? "no content was asked for" : "";
      default:
        return "a load fails: " + error.ToString();
    }
  }

  void Restore(const std::string& name) {
    const auto earlier = store_->Pin(name);
    if (!earlier.ok()) return;
    simulator_.Pause(8);
    const auto restored = publisher_->Restore(name, **earlier);
    if (restored.ok() && restored->snapshot->dataset != (*earlier)->dataset) {
      simulator_.Fail("another generation is restored");
    }
  }

  void Read() {
    simulator_.NameThread("reader");
    for (std::uint64_t i = random_.Between(1, 4); i > 0; --i) {
      const auto snapshot = store_->Pin(kNames[random_.Below(names_)]);
      simulator_.Pause(12);
      if (snapshot.ok() && random_.OneIn(4)) store_->Lease(**snapshot, 4 * Simulator::kStep);
    }
  }

  void Stop() {
    stopping_ = true;
    queue_->Stop();
    stopped_ = true;
  }

  std::string CheckMemory() {
    const std::uint64_t alive = CountedGeneration::alive();
    if (alive <= generations_max_) return {};
    return fmt::format("{} generations are in memory, which has space for {}", alive,
                       generations_max_);
  }

  void CheckEnd() {
    for (const Queued& change : queued_) {
      if (change.runs + change.abandoned != (change.accepted ? 1 : 0)) {
        simulator_.Fail("a change is neither run nor abandoned once");
      }
    }
    for (const engine::CollectionStatus& status : store_->List()) {
      if (status.state != engine::CollectionState::kServing) {
        simulator_.Fail("a claim has no end");
      }
    }
    for (const char* const name : kNames) static_cast<void>(store_->Remove(name));
    store_->AwaitReclaimed();
    if (CountedGeneration::alive() != 0) simulator_.Fail("a generation is alive that nobody holds");
    // Nothing is promised to a load any more: all of the memory can be taken.
    for (std::uint64_t i = 0; i < generations_max_; ++i) {
      const auto loaded = publisher_->Create({fmt::format("last-{}", i), "0"});
      if (!loaded.ok()) simulator_.Fail("memory is lost: " + loaded.status().ToString());
    }
  }

  Simulator& simulator_;
  Random& random_;
  const SimulatedClock clock_;
  engine::FakeBackend backend_;
  std::uint64_t generations_max_ = 0;
  std::size_t names_ = 0;
  std::size_t contents_ = 0;
  std::size_t waiting_max_ = 0;
  std::deque<Queued> queued_;
  std::uint64_t begun_ = 0;  // loads
  std::uint64_t ended_ = 0;
  bool changing_ = false;  // a queued change runs
  bool stopping_ = false;
  bool stopped_ = false;
  std::optional<engine::SnapshotStore> store_;
  std::optional<Publisher> publisher_;
  std::optional<engine::ChangeQueue> queue_;
};

}  // namespace

void RunLoads(Simulator& simulator) { Loads(simulator).Run(); }

}  // namespace simile::simulation
