#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "engine/queue/executor.h"
#include "engine/queue/queued_task.h"
#include "engine/snapshots/snapshot_store.h"
#include "simulation/outside_world.h"
#include "simulation/sample_contents.h"
#include "simulation/scenarios.h"

namespace simile::simulation {
namespace {

using base::ErrorReason;

struct Call {
  std::size_t content = 0;
  std::size_t first_query = 0;
  bool hard = false;
  std::uint32_t searches = 0;
  Clock::TimePoint deadline;
  StopSource caller;
  const SimulatedThread* submitting = nullptr;
  bool refused = false;
  bool accepted = false;
  bool gathered = false;   // queued, or refused, by RunHere
  bool leaving = false;    // its cancellation has begun
  bool cancelled = false;  // and has ended
  int answers = 0;
};

// Callers of every kind on an executor, swaps of what they search, and a stop at any moment.
class Calls {
 public:
  explicit Calls(Simulator& simulator) : simulator_(simulator), random_(simulator.random()) {}

  void Run() {
    for (const char* const collection : kCollections) {
      if (store_.BeginCreate(collection).ok()) Publish(collection);
    }
    Start();
    std::vector<Thread> threads;
    for (std::uint64_t i = random_.Between(2, 4); i > 0; --i) {
      threads.emplace_back([this] { MakeCalls(); });
    }
    if (random_.OneIn(2)) threads.emplace_back([this] { CancelSome(); });
    if (random_.OneIn(2)) threads.emplace_back([this] { SwapSome(); });
    const bool stops_early = random_.OneIn(2);
    if (stops_early) {
      simulator_.Pause(16);
      Stop();
    }
    for (Thread& thread : threads) thread.join();
    if (!stops_early) {
      while (HasUnanswered()) simulator_.Wait(all_answered_);
      Stop();
    }
    CheckEnd();
  }

 private:
  static constexpr std::size_t kCallsMax = 20;
  static constexpr std::array<const char*, 2> kCollections = {"films", "songs"};

  void Start() {
    engine::Executor::Options options;
    options.queue_queries_max = static_cast<std::uint32_t>(random_.Between(2, 8));
    queries_max_ = options.queue_queries_max;
    options.batch_queries_max = static_cast<std::uint32_t>(random_.Between(1, 8));
    if (random_.OneIn(3)) options.queue_bytes_max = random_.Between(2'000, 12'000);
    bytes_max_ = options.queue_bytes_max;
    options.completers = static_cast<unsigned>(random_.Between(1, 2));
    executor_.emplace(options, ServedBy{{"cpu", "scan-fake", "a test"}, "a test"}, clock_,
                      [](const engine::Executor::BatchReport&) {});
    simulator_.SetIdleCheck([this] { return CheckIdle(); });
  }

  void Publish(const char* collection) {
    const absl::Status status =
        random_.OneIn(16) ? absl::UnavailableError("the device is lost") : absl::OkStatus();
    fails_ = fails_ || !status.ok();
    const Searches searches{
        .pieces = random_.OneIn(2) ? 1 : random_.Between(2, 5),
        .status = status,
        .start = random_.OneIn(2),
        .on_start = [this] { SearchStarts(); },
        .on_abandon = [this] { simulator_.Fail("a search is given up that a device works on"); }};
    store_.Publish(collection,
                   MakeGeneration(
                       random_.Below(kContents), [this] { Search(); }, lives_.Begin(), searches));
  }

  void SearchStarts() {
    if (stopped_) simulator_.Fail("a search starts after the stop");
    if (searching_) simulator_.Fail("a search starts while another one is computed");
    starting_ = true;
    simulator_.Pause(4);
    starting_ = false;
  }

  void Search() {
    if (searching_) simulator_.Fail("two searches run at once");
    if (stopped_) simulator_.Fail("a search runs after the stop");
    searching_ = true;
    simulator_.Pause(4);
    if (random_.OneIn(4)) simulator_.Sleep(std::chrono::milliseconds(random_.Between(5, 15)));
    searching_ = false;
  }

  void MakeCalls() {
    simulator_.NameThread("caller");
    for (std::uint64_t i = random_.Between(1, 3); i > 0; --i) {
      if (random_.OneIn(2)) simulator_.Pause(6);
      if (random_.OneIn(2)) {
        MakeCall();
        continue;
      }
      engine::TaskList arrivals;
      for (std::uint64_t j = random_.Between(1, 3); j > 0; --j) MakeCall(&arrivals);
      here_.push_back(simulator_.running());
      executor_->RunHere(arrivals);
      std::erase(here_, simulator_.running());
    }
  }

  //   arrivals  that it is gathered with; null: it is submitted
  void MakeCall(engine::TaskList* arrivals = nullptr) {
    if (calls_.size() >= kCallsMax) return;
    const auto snapshot = store_.Pin(kCollections[random_.Below(kCollections.size())]);
    Call& call = calls_.emplace_back();
    call.content = ParseContent(**snapshot);
    call.hard = random_.OneIn(3);
    const std::size_t count = random_.OneIn(4) ? random_.Between(2, 4) : 1;
    call.first_query = random_.Below(kQueries - count + 1);
    auto task = MakeTask(*snapshot, call.first_query, count, call.hard);
    if (random_.OneIn(4)) task->priority = engine::Priority::kBulk;
    if (random_.OneIn(4)) task->reply_bytes_estimate = random_.Between(1, 4) << 17;
    task->cancelled = call.caller.get_token();
    task->arrived_at = simulator_.now();
    call.deadline = random_.OneIn(2)
                        ? Clock::TimePoint::max()
                        : simulator_.now() + Simulator::kStep * static_cast<int>(random_.Below(16));
    task->deadline = call.deadline;
    task->done = [this, &call](absl::StatusOr<engine::SearchAnswer> answer) {
      Answered(call, answer);
    };
    call.searches = engine::CountSearches(*task);
    largest_bytes_ = std::max(largest_bytes_, engine::SumBytes(*task));
    const bool after_stop = stopped_;
    call.submitting = simulator_.running();
    absl::Status status;
    if (arrivals == nullptr) {
      status = executor_->Submit(std::move(task));
    } else {
      call.gathered = true;
      status = executor_->Gather(std::move(task), *arrivals);
    }
    call.submitting = nullptr;
    (status.ok() ? call.accepted : call.refused) = true;
    if (status.ok() && after_stop && !call.gathered) {
      simulator_.Fail("a call is taken after the stop");
    }
    if (!status.ok() && base::ReasonOf(status) != ErrorReason::kQueueFull) {
      const std::string wrong = CheckError(call, status);
      if (!wrong.empty()) simulator_.Fail(wrong);
    }
    CheckCounts();
  }

  void Answered(Call& call, const absl::StatusOr<engine::SearchAnswer>& answer) {
    if (++call.answers > 1) simulator_.Fail("a call is answered twice");
    if (call.submitting == simulator_.running()) simulator_.Fail("a call is answered by Submit");
    if (simulator_.locks_held() != 0) simulator_.Fail("a call is answered while a lock is held");
    if (stopped_ && std::ranges::find(here_, simulator_.running()) == here_.end()) {
      simulator_.Fail("a call is answered after the stop");
    }
    const std::string wrong =
        answer.ok() ? CheckResults(call.content, call.first_query, call.hard, answer->results)
                    : CheckError(call, answer.status());
    if (!wrong.empty()) simulator_.Fail(wrong);
    if (random_.OneIn(6)) {
      ++replying_;
      simulator_.Pause(8);
      --replying_;
    }
    if (random_.OneIn(6)) MakeCall();
    simulator_.WakeAll(all_answered_);
  }

  std::string CheckError(const Call& call, const absl::Status& error) const {
    switch (base::ReasonOf(error)) {
      case ErrorReason::kDeadlineExceeded:
        return simulator_.now() >= call.deadline ? "" : "a call expires before its deadline";
      case ErrorReason::kCancelled:
        return call.leaving ? "" : "a call is cancelled that nobody cancelled";
      case ErrorReason::kQueueFull:
        return call.gathered ? "" : "a call is refused that was taken";
      case ErrorReason::kStopping:
        return stopping_ ? "" : "a call is told of a stop that has not begun";
      default:
        return fails_ && absl::IsUnavailable(error) ? "" : "a call fails: " + error.ToString();
    }
  }

  void CancelSome() {
    simulator_.NameThread("canceller");
    for (std::uint64_t i = random_.Between(1, 6); i > 0; --i) {
      simulator_.Pause(3);
      if (calls_.empty()) continue;
      Call& call = calls_[random_.OneIn(2) ? calls_.size() - 1 : random_.Below(calls_.size())];
      call.leaving = true;
      call.caller.request_stop();
      call.cancelled = true;
    }
  }

  void SwapSome() {
    simulator_.NameThread("swapper");
    for (std::uint64_t i = random_.Between(1, 3); i > 0; --i) {
      simulator_.Pause(8);
      const char* const collection = kCollections[random_.Below(kCollections.size())];
      if (store_.BeginReplace(collection).ok()) Publish(collection);
    }
  }

  void Stop() {
    stopping_ = true;
    std::optional<Thread> other;
    if (random_.OneIn(8)) {
      other.emplace([this] {
        executor_->Stop();
        stopped_ = true;
      });
    }
    executor_->Stop();
    stopped_ = true;
    if (other) other->join();
  }

  bool HasUnanswered() const {
    return std::ranges::any_of(calls_,
                               [](const Call& call) { return call.accepted && call.answers == 0; });
  }

  // What holds at any moment.
  std::string WrongCounts(const engine::ExecutorCounts& counts) const {
    std::uint64_t waiting = 0;
    for (const engine::LaneCounts& lane : counts.lanes) {
      if (lane.large_waiting > lane.waiting || lane.running > 1'000) return "counts are negative";
      waiting += lane.waiting - lane.large_waiting;
    }
    if (waiting > queries_max_) {
      return fmt::format("{} queries wait in a queue of {}", waiting, queries_max_);
    }
    if (counts.queue_bytes > bytes_max_ + largest_bytes_) {
      return fmt::format("the queue holds {} bytes and may hold {}, and a call of {} beside it",
                         counts.queue_bytes, bytes_max_, largest_bytes_);
    }
    return {};
  }

  void CheckCounts() {
    const std::string wrong = WrongCounts(executor_->counts());
    if (!wrong.empty()) simulator_.Fail(wrong);
  }

  // What holds while nothing happens but a search, its start or the sending of a reply.
  std::string CheckIdle() {
    const engine::ExecutorCounts counts = executor_->counts();
    if (std::string wrong = WrongCounts(counts); !wrong.empty()) return wrong;
    std::uint64_t running = 0;
    for (const engine::LaneCounts& lane : counts.lanes) running += lane.running;
    if (counts.paused_bytes > 0 && running == 0) return "a pass is paused that nobody waits for";
    std::uint64_t may_wait = 0;
    for (const Call& call : calls_) {
      if (!call.accepted || call.answers > 0) continue;
      // The watching thread sleeps for a while, not until a moment: what slips meanwhile delays it.
      const bool expired = call.deadline <= simulator_.now() && !simulator_.time_slips();
      if (!call.cancelled && !expired) may_wait += call.searches;
      if (!searching_ && !starting_ && replying_ == 0)
        return "a call is not answered, and nothing runs";
    }
    if (counts.queue_depth > may_wait) {
      return fmt::format("{} queries wait, and {} of calls that were neither cancelled nor expired",
                         counts.queue_depth, may_wait);
    }
    return {};
  }

  void CheckEnd() {
    for (const Call& call : calls_) {
      if (call.accepted && call.answers != 1) simulator_.Fail("a call is not answered");
      if (call.refused && call.answers != 0) simulator_.Fail("a call is refused and answered");
    }
    const engine::ExecutorCounts counts = executor_->counts();
    if (counts.queue_bytes != 0 || counts.queue_depth != 0 || counts.paused_bytes != 0) {
      simulator_.Fail(fmt::format("at the end {} queries and {} bytes are in the queue, {} paused",
                                  counts.queue_depth, counts.queue_bytes, counts.paused_bytes));
    }
    for (const engine::LaneCounts& lane : counts.lanes) {
      if (lane.running != 0 || lane.large_waiting != 0 || lane.wait_ms_estimated != 0) {
        simulator_.Fail(fmt::format("at the end a lane has {} queries running, {} large, {} ms",
                                    lane.running, lane.large_waiting, lane.wait_ms_estimated));
      }
    }
    simulator_.SetIdleCheck({});
    executor_.reset();
    store_.AwaitReclaimed();
    if (lives_.alive() != kCollections.size()) {
      simulator_.Fail(fmt::format("{} generations are alive and {} are served", lives_.alive(),
                                  kCollections.size()));
    }
  }

  Simulator& simulator_;
  Random& random_;
  const SimulatedClock clock_;
  Lives lives_{simulator_};
  engine::SnapshotStore store_{clock_};
  std::deque<Call> calls_;
  std::vector<const SimulatedThread*> here_;  // threads in RunHere, which answer after a stop too
  Waiters all_answered_;
  bool searching_ = false;
  bool starting_ = false;
  int replying_ = 0;
  bool fails_ = false;
  bool stopping_ = false;
  bool stopped_ = false;
  std::uint64_t queries_max_ = 0;
  std::uint64_t bytes_max_ = 0;
  std::uint64_t largest_bytes_ = 0;
  std::optional<engine::Executor> executor_;
};

}  // namespace

void RunCalls(Simulator& simulator) { Calls(simulator).Run(); }

}  // namespace simile::simulation
