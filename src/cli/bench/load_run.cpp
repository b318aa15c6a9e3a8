#include "cli/bench/load_run.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "cli/bench/load_thread.h"
#include "cli/bench/server_process.h"

namespace simile::cli::bench {
namespace {

constexpr std::chrono::milliseconds kLiveInterval{200};
constexpr std::chrono::milliseconds kConnectTimeout{10'000};
// Streams last this much longer than the run and its last calls.
constexpr std::chrono::milliseconds kStreamAllowance{5'000};

// Part `index` of `count` parts of a number, as equal as possible.
std::uint32_t PartOf(std::uint32_t number, std::uint32_t count, std::uint32_t index) {
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
                                 PartOf(plan.connections, plan.threads, i), kConnectTimeout);
    if (!channels.ok()) return channels.status();
    const std::uint32_t slots = PartOf(plan.load.in_flight, plan.threads, i);
    senders.push_back(plan.transport == Transport::kUnary
                          ? MakeUnaryCalls(*channels, slots, plan.timeout)
                          : MakeStreamCalls(*channels, slots, plan.timeout, end_by));
  }
  return senders;
}

// Waits until a time; shows how the run goes meanwhile.
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

absl::StatusOr<RunResult> RunLoad(const RunPlan& plan, const RequestPool& pool,
                                  const OnLive& on_live) {
  auto senders = MakeSenders(plan);
  if (!senders.ok()) return senders.status();
  const SteadyTime start = std::chrono::steady_clock::now();
  const MeasuredWindow window{plan.warm_up, plan.warm_up + plan.duration};
  Threads threads;
  for (std::uint32_t i = 0; i < plan.threads; ++i) {
    Load share{PartOf(plan.load.in_flight, plan.threads, i), plan.load.rate};
    if (share.rate) *share.rate /= plan.threads;  // Poisson processes add up to one
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
  const std::optional<double> server_before = CpuSecondsOf(plan.server_processes);
  WaitUntil(begin + plan.duration, plan, begin, threads, on_live);
  result.client_cpu_s = OwnCpuSeconds() - client_before;
  const std::optional<double> server_after = CpuSecondsOf(plan.server_processes);
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
