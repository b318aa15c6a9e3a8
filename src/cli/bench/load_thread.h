#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cli/bench/call_sender.h"
#include "cli/bench/load_run.h"

namespace simile::cli::bench {

// A client thread's share of a run. The sender's queue is served by one thread, which in a closed
// loop sends the next call as well; in an open loop another thread sends.
class LoadThread {
 public:
  // Borrows the plan and the pool.
  //   share   this thread's part of the load
  //   window  since `start`
  LoadThread(const RunPlan& plan, const Load& share, const RequestPool& pool,
             const MeasuredWindow& window, std::chrono::steady_clock::time_point start,
             std::uint64_t seed, std::unique_ptr<CallSender> sender);

  // Starts sending; calls are due from the run's start.
  void Start();
  // Waits until everything sent was answered. Call after the run's end.
  void Finish();

  // Moves what was counted since the last call into `live`. Thread-safe.
  void CollectLive(LiveState& live, ReceiptTally& receipts);

  // After Finish.
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
  // Sends the next call if it is due before the end. Returns false when there is none to send now.
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

  std::mutex mutex_;                    // guards what follows
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

}  // namespace simile::cli::bench
