#include "cli/bench/load_run.h"

#include <algorithm>
#include <condition_variable>
#include <ctime>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "cli/bench/call_sender.h"
#include "cli/bench/server_process.h"
#include "cli/server_text.h"

namespace simile::cli::bench {
namespace {

// A client thread's share of a run. One thread serves the sender's completion queue; in a closed
// loop it also sends the next call. In an open loop a second thread sends.
class LoadThread {
 public:
  // Borrows the plan and the pool.
  //   share   this thread's share of the load
  //   window  in times since `start`
  LoadThread(const RunPlan& plan, const Load& share, const RequestPool& pool,
             const MeasuredWindow& window, std::chrono::steady_clock::time_point start,
             std::uint64_t seed, std::unique_ptr<CallSender> sender);

  // Starts sending. Calls are due from the run's start on.
  void Start();
  // Waits until every sent call is answered. REQUIRES: the run has ended.
  void Finish();

  // Adds the latencies and queries since the last CollectLive, and all errors so far, to `live`.
  // Adds all receipts so far to `receipts`. Thread-safe.
  void CollectLive(LiveState& live, ReceiptTally& receipts);

  // These are valid after Finish.
  LoadTally& tally() { return tally_; }
  std::vector<KeptAnswer>& kept() { return kept_; }
  std::uint64_t not_kept() const { return not_kept_; }
  std::uint64_t unsent() const { return unsent_; }

 private:
  struct Call {
    RequestPool::Choice choice;
    Nanoseconds intended{0};
    Nanoseconds sent{0};
  };

  Nanoseconds Now() const;
  // Sends the next call if one is due now. Returns false if there is none.
  bool SendOne();
  void SendAtTimes();
  void OnOutcome(std::uint32_t slot, CallOutcome& outcome);
  void Record(const Call& call, Nanoseconds done, CallOutcome& outcome);
  void Keep(const Call& call, const CallOutcome& outcome);

  const RunPlan& plan_;
  const RequestPool& pool_;
  const MeasuredWindow window_;
  const std::chrono::steady_clock::time_point start_;
  const bool is_open_;
  const std::unique_ptr<CallSender> sender_;
  std::thread receiving_;
  std::thread sending_;

  std::mutex mutex_;                    // guards the members below
  std::condition_variable slot_freed_;  // for the sending thread and Finish
  LoadPace pace_;
  RandomDraw random_;
  std::vector<Call> calls_;  // by slot
  std::vector<std::uint32_t> free_slots_;
  LoadTally tally_;
  std::uint64_t answers_seen_ = 0;
  std::vector<KeptAnswer> kept_;
  std::size_t kept_bytes_ = 0;
  std::uint64_t not_kept_ = 0;
  std::uint64_t unsent_ = 0;
  LatencyHistogram live_latency_;  // since the last CollectLive
  std::uint64_t live_queries_ = 0;
};

// Reads the receipt of one answer in this many. Reading every receipt would cost as much as the
// calls.
constexpr std::uint64_t kAnswersPerReceipt = 64;
constexpr std::size_t kKeptBytesMax = 64U << 20;  // of each thread
// How often a sleeping sender checks whether the run is over.
constexpr std::chrono::milliseconds kSleepMax{100};

// Sleeps until a time of the steady clock, accurate to some tens of microseconds.
void SleepUntil(std::chrono::steady_clock::time_point time) {
  const auto since_epoch = time.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch);
  timespec until{};
  until.tv_sec = seconds.count();
  until.tv_nsec = std::chrono::nanoseconds(since_epoch - seconds).count();
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

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
  // Sends the last calls, which became due while this thread slept.
  while (SendOne()) {
  }
  // Counts calls that were due but not sent, with their age. Leaving them out would hide the
  // overload.
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

constexpr std::chrono::milliseconds kLiveInterval{200};
constexpr std::chrono::milliseconds kConnectTimeout{10'000};
// How much longer streams last than the run and its last calls.
constexpr std::chrono::milliseconds kStreamAllowance{5'000};

// The size of part `index` if `number` is split into `count` parts as evenly as possible.
std::uint32_t EvenPart(std::uint32_t number, std::uint32_t count, std::uint32_t index) {
  return number / count + (index < number % count ? 1 : 0);
}

using Threads = std::vector<std::unique_ptr<LoadThread>>;
using SteadyTime = std::chrono::steady_clock::time_point;

absl::StatusOr<std::vector<std::unique_ptr<CallSender>>> MakeSenders(const RunPlan& plan) {
  std::vector<std::unique_ptr<CallSender>> senders;
  const auto end_by = std::chrono::system_clock::now() + plan.warm_up + plan.duration +
                      plan.timeout + kConnectTimeout + kStreamAllowance;
  for (std::uint32_t i = 0; i < plan.threads; ++i) {
    auto channels = OpenChannels(plan.address, plan.security,
                                 EvenPart(plan.connections, plan.threads, i), kConnectTimeout);
    if (!channels.ok()) return channels.status();
    const std::uint32_t slots = EvenPart(plan.load.in_flight, plan.threads, i);
    senders.push_back(plan.transport == Transport::kUnary
                          ? MakeUnaryCalls(*channels, slots, plan.timeout)
                          : MakeStreamCalls(*channels, slots, plan.timeout, end_by));
  }
  return senders;
}

// Waits until a time and reports the live state meanwhile.
void WaitUntil(SteadyTime time, const RunPlan& plan, SteadyTime window_begin, Threads& threads,
               const OnLive& on_live) {
  SteadyTime last = std::chrono::steady_clock::now();
  while (last < time) {
    std::this_thread::sleep_until(on_live ? std::min(time, last + kLiveInterval) : time);
    const SteadyTime now = std::chrono::steady_clock::now();
    if (on_live) {
      LiveState live;
      ReceiptTally receipts;
      for (const auto& thread : threads) thread->CollectLive(live, receipts);
      live.elapsed_s = std::chrono::duration<double>(now - window_begin).count();
      live.duration_s = std::chrono::duration<double>(plan.duration).count();
      live.queries_per_s /= std::chrono::duration<double>(now - last).count();
      if (receipts.receipts > 0) {
        live.batch_size = receipts.batch_size / static_cast<double>(receipts.receipts);
      }
      on_live(live);
    }
    last = now;
  }
}

}  // namespace

void ReceiptTally::Add(const v1::Receipt& receipt, std::size_t of_queries) {
  const auto own = static_cast<double>(of_queries);
  ++receipts;
  queries += own;
  // Charges the call its share of the pass. A call larger than a pass is charged the whole time.
  engine_us += static_cast<double>(receipt.compute_us()) *
               std::min(1.0, own / std::max(1U, receipt.batch_size()));
  batch_size += receipt.batch_size();
  queue_us += static_cast<double>(receipt.queue_us());
  compute_us += static_cast<double>(receipt.compute_us());
  total_us += static_cast<double>(receipt.total_us());
  ++backends[BackendText(receipt)];
}

void ReceiptTally::Merge(const ReceiptTally& other) {
  receipts += other.receipts;
  batch_size += other.batch_size;
  queue_us += other.queue_us;
  compute_us += other.compute_us;
  total_us += other.total_us;
  queries += other.queries;
  engine_us += other.engine_us;
  for (const auto& [backend, count] : other.backends) backends[backend] += count;
}

std::optional<double> ReceiptTally::EngineQueriesPerSecond() const {
  if (engine_us == 0) return std::nullopt;
  return queries / engine_us * 1e6;
}

void LoadTally::AddAnswer(std::size_t kind, const CallTimes& times, const MeasuredWindow& window,
                          std::size_t queries, std::size_t answer_bytes) {
  if (window.Has(times.intended)) {
    kinds[kind].Record(times.done - times.intended);
    send_delay.Record(times.sent - times.intended);
  }
  if (window.Has(times.done)) {
    ++calls_in_window;
    queries_in_window += queries;
    answer_bytes_in_window += answer_bytes;
  }
}

void LoadTally::AddError(const CallTimes& times, const MeasuredWindow& window,
                         const CallError& error) {
  if (window.Has(times.done)) ++failed_in_window;
  if (!window.Has(times.intended)) return;
  failed.Record(times.done - times.intended);
  send_delay.Record(times.sent - times.intended);
  ErrorTally& tally = errors[error.reason];
  if (tally.count++ == 0) tally.first_message = error.message;
}

void LoadTally::Merge(const LoadTally& other) {
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i].Merge(other.kinds[i]);
  failed.Merge(other.failed);
  send_delay.Merge(other.send_delay);
  for (const auto& [reason, tally] : other.errors) {
    ErrorTally& mine = errors[reason];
    if (mine.count == 0) mine.first_message = tally.first_message;
    mine.count += tally.count;
  }
  calls_in_window += other.calls_in_window;
  queries_in_window += other.queries_in_window;
  failed_in_window += other.failed_in_window;
  answer_bytes_in_window += other.answer_bytes_in_window;
  receipts.Merge(other.receipts);
}

LatencyHistogram LoadTally::All() const {
  LatencyHistogram all;
  for (const LatencyHistogram& kind : kinds) all.Merge(kind);
  return all;
}

absl::StatusOr<RunResult> RunLoad(const RunPlan& plan, const RequestPool& pool,
                                  const OnLive& on_live) {
  auto senders = MakeSenders(plan);
  if (!senders.ok()) return senders.status();
  const SteadyTime start = std::chrono::steady_clock::now();
  const MeasuredWindow window{plan.warm_up, plan.warm_up + plan.duration};
  Threads threads;
  for (std::uint32_t i = 0; i < plan.threads; ++i) {
    Load share{EvenPart(plan.load.in_flight, plan.threads, i), plan.load.rate};
    if (share.rate) *share.rate /= plan.threads;  // Poisson processes add up to a Poisson process
    threads.push_back(std::make_unique<LoadThread>(
        plan, share, pool, window, start, base::SplitMix(plan.seed + i), std::move((*senders)[i])));
  }
  for (const auto& thread : threads) thread->Start();

  RunResult result;
  result.plan = plan;
  result.tally = LoadTally(pool.kinds().size());
  const SteadyTime begin = start + plan.warm_up;
  WaitUntil(begin, plan, begin, threads, on_live);
  if (plan.card != nullptr) plan.card->Begin();
  const double client_before = OwnCpuSeconds();
  const std::optional<double> server_before = ReadCpuSeconds(plan.server_processes);
  WaitUntil(begin + plan.duration, plan, begin, threads, on_live);
  result.client_cpu_s = OwnCpuSeconds() - client_before;
  const std::optional<double> server_after = ReadCpuSeconds(plan.server_processes);
  if (server_before && server_after) result.server_cpu_s = *server_after - *server_before;
  if (plan.card != nullptr) result.card = plan.card->End();
  result.seconds = window.Seconds();

  for (const auto& thread : threads) {
    thread->Finish();
    result.tally.Merge(thread->tally());
    result.unsent += thread->unsent();
    result.not_kept += thread->not_kept();
    std::ranges::move(thread->kept(), std::back_inserter(result.kept));
  }
  return result;
}

}  // namespace simile::cli::bench
