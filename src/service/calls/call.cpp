#include "service/calls/call.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "engine/search/call_context.h"
#include "observe/metrics.h"

namespace simile::service {
namespace {

absl::Status TooLarge(std::string_view more_than, std::uint64_t bytes, std::uint64_t bytes_max,
                      std::string_view remedy) {
  return base::Error(base::ErrorReason::kReplyTooLarge,
                     fmt::format("the answer needs {}{} bytes and may have {}; {}", more_than,
                                 base::Grouped(bytes), base::Grouped(bytes_max), remedy));
}

}  // namespace

absl::Status CheckReplySize(const Reply& reply, std::uint64_t bytes_max, std::string_view remedy) {
  const std::uint64_t bytes = reply.bytes();
  if (bytes <= bytes_max) return absl::OkStatus();
  return reply.is_exact() ? TooLarge("", bytes, bytes_max, remedy)
                          : ReplyTooLargeToBuild(bytes - 1, bytes_max, remedy);
}

absl::Status ReplyTooLargeToBuild(std::uint64_t bytes_min, std::uint64_t bytes_max,
                                  std::string_view remedy) {
  return TooLarge("more than ", bytes_min, bytes_max, remedy);
}

absl::Status CallerGoneError() {
  return base::Error(base::ErrorReason::kCancelled,
                     "the caller gave up before the answer was sent");
}

absl::Status StoppingError() {
  return base::Error(base::ErrorReason::kStopping,
                     "the server is stopping; retry on another server, or later");
}

base::LongWork MakeLongWork(const AnyCall& call, Clock::TimePoint deadline, const Clock& clock,
                            std::string_view step) {
  const engine::CallContext context(call.cancelled(), deadline, clock);
  return base::LongWork([context, step] {
    ResolveWorkers::LetOthersRun();
    return context.Check(step);
  });
}

base::LongWork MakeLongWork(const AnyCall& call, const Clock& clock, std::string_view step) {
  return MakeLongWork(call, call.deadline().value_or(Clock::TimePoint::max()), clock, step);
}

absl::Status PostToWorkers(ResolveWorkers& workers, std::function<void()> work,
                           const WorkNeeds& needs) {
  constexpr std::chrono::milliseconds kRetryAfter{100};
  if (workers.Post(std::move(work), needs)) return absl::OkStatus();
  return base::WithRetryAfter(
      base::Error(base::ErrorReason::kQueueFull,
                  fmt::format("too many calls wait for a resolve worker: {}; send fewer at a time, "
                              "or to another server",
                              workers.Shortage(needs))),
      kRetryAfter);
}

void CountRefusal(observe::Metrics& metrics, const absl::Status& status) {
  if (status.ok()) return;
  switch (base::ReasonOf(status)) {
    case base::ErrorReason::kQueueFull:
      return metrics.CountRejected(observe::Rejection::kQueueFull);
    case base::ErrorReason::kDeadlineExceeded:
      return metrics.CountRejected(observe::Rejection::kDeadline);
    case base::ErrorReason::kCancelled:
      return metrics.CountRejected(observe::Rejection::kCancelled);
    default:
      return;
  }
}

}  // namespace simile::service
