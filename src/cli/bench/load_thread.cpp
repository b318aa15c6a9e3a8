#include "cli/bench/load_thread.h"

#include <ctime>
#include <utility>

namespace simile::cli::bench {
namespace {

// Receipts are read from one answer in so many: reading each would cost as much as the call.
constexpr std::uint64_t kAnswersPerReceipt = 64;
constexpr std::size_t kKeptBytesMax = 64U << 20;  // of each thread
// A sleeping sender looks this often whether the run is over.
constexpr std::chrono::milliseconds kSleepMax{100};

// Sleeps until a time of the steady clock, to some tens of microseconds.
void SleepUntil(std::chrono::steady_clock::time_point time) {
  const auto since_epoch = time.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch);
  timespec until{};
  until.tv_sec = seconds.count();
  until.tv_nsec = std::chrono::nanoseconds(since_epoch - seconds).count();
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

}  // namespace

LoadThread::LoadThread(const RunPlan& plan, const Load& share, const RequestPool& pool,
                       const MeasuredWindow& window, std::chrono::steady_clock::time_point start,
                       std::uint64_t seed, std::unique_ptr<CallSender> sender)
    : plan_(plan),
      pool_(pool),
      window_(window),
      start_(start),
      is_open_(share.rate.has_value()),
      sender_(std::move(sender)),
      pace_(share, seed),
      random_(seed + 1),
      calls_(share.in_flight),
      tally_(pool.kinds().size()) {
  for (std::uint32_t slot = share.in_flight; slot-- > 0;) free_slots_.push_back(slot);
}

Nanoseconds LoadThread::Now() const { return std::chrono::steady_clock::now() - start_; }

void LoadThread::Start() {
  receiving_ = std::thread([this] {
    sender_->Run([this](std::uint32_t slot, CallOutcome& outcome) { OnOutcome(slot, outcome); });
  });
  sending_ = std::thread([this] {
    if (is_open_) {
      SendAtTimes();
    } else {
      while (SendOne()) {  // the first calls; each answer sends the next one
      }
    }
  });
}

bool LoadThread::SendOne() {
  std::uint32_t slot = 0;
  RequestPool::Choice choice;
  {
    const std::lock_guard lock(mutex_);
    const Nanoseconds now = Now();
    const std::optional<Nanoseconds> due = pace_.NextDue(now);
    if (!due || *due > now || *due >= window_.end) return false;
    slot = free_slots_.back();
    free_slots_.pop_back();
    choice = pool_.Choose(random_);
    calls_[slot] = {choice, pace_.Send(now), now};
  }
  sender_->Start(slot, pool_.kinds()[choice.kind].method, pool_.Request(choice));
  return true;
}

void LoadThread::SendAtTimes() {
  while (Now() < window_.end) {
    if (SendOne()) continue;
    std::unique_lock lock(mutex_);
    const std::optional<Nanoseconds> due = pace_.NextDue(Now());
    if (!due) {
      slot_freed_.wait_for(lock, kSleepMax);
      continue;
    }
    lock.unlock();
    SleepUntil(start_ + std::min({*due, Now() + kSleepMax, window_.end}));
  }
  // The last ones, which were due while this thread slept.
  while (SendOne()) {
  }
  // What was due and not sent is counted with its age: leaving it out would hide the overload.
  const std::lock_guard lock(mutex_);
  while (const std::optional<Nanoseconds> due = pace_.SkipBefore(window_.end)) {
    if (!window_.Has(*due)) continue;
    ++unsent_;
    tally_.kinds[pool_.Choose(random_).kind].Record(window_.end - *due);
  }
}

void LoadThread::OnOutcome(std::uint32_t slot, CallOutcome& outcome) {
  {
    const std::lock_guard lock(mutex_);
    Record(calls_[slot], Now(), outcome);
    free_slots_.push_back(slot);
    pace_.Complete();
  }
  slot_freed_.notify_all();
  if (!is_open_) SendOne();
}

void LoadThread::Record(const Call& call, Nanoseconds done, CallOutcome& outcome) {
  const CallTimes times{call.intended, call.sent, done};
  if (outcome.error) {
    tally_.AddError(times, window_, *outcome.error);
    return;
  }
  const std::uint32_t queries = pool_.kinds()[call.choice.kind].queries;
  tally_.AddAnswer(call.choice.kind, times, window_, queries, outcome.answer.Length());
  live_latency_.Record(done - call.intended);
  live_queries_ += queries;
  if (!window_.Has(call.intended)) return;
  if (answers_seen_++ % kAnswersPerReceipt == 0) {
    const auto receipt = ReadReceipt(outcome.answer, plan_.transport == Transport::kStream);
    if (receipt) tally_.receipts.Add(*receipt, queries);
  }
  if (plan_.verify_share > 0 && random_.Uniform() <= plan_.verify_share) Keep(call, outcome);
}

void LoadThread::Keep(const Call& call, const CallOutcome& outcome) {
  if (kept_bytes_ + outcome.answer.Length() > kKeptBytesMax) {
    ++not_kept_;
    return;
  }
  kept_bytes_ += outcome.answer.Length();
  kept_.push_back({call.choice, outcome.answer});
}

void LoadThread::Finish() {
  sending_.join();
  {
    std::unique_lock lock(mutex_);
    slot_freed_.wait(lock, [this] { return pace_.in_flight() == 0; });
  }
  sender_->Stop();
  receiving_.join();
}

void LoadThread::CollectLive(LiveState& live, ReceiptTally& receipts) {
  const std::lock_guard lock(mutex_);
  live.latency.Merge(live_latency_);
  live_latency_ = {};
  live.queries_per_s += static_cast<double>(std::exchange(live_queries_, 0));
  live.errors += tally_.failed.count();
  receipts.Merge(tally_.receipts);
}

}  // namespace simile::cli::bench
