#include "service/grpc/exchange.h"

#include <algorithm>

namespace simile::service {

Exchange::Exchange(Method& method) : method_(method) {
  context_.AsyncNotifyWhenDone(done_event_.tag());
}

void Exchange::ExpectTaken(Clock::TimePoint arrived_at) {
  SetTakeDeadline(
      std::max<Clock::TimePoint>(arrived_at + environment().limits.search_deadline_max,
                                 environment().clock.Now() + net::IoThread::kLookInterval));
}

void Exchange::EndOperation() {
  if (operations_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  thread().Remove(*this);
  if (method_.counts_in_flight()) environment().metrics.AddRequestsInFlight(-1);
  Release();
}

void Exchange::OnArrived(bool ok) {
  if (!ok) return Release();  // the server has shut down
  method_.CallArrived();
  if (method_.counts_in_flight()) environment().metrics.AddRequestsInFlight(1);
  const absl::Status made = Guarded([this] { MakeCall(); });
  if (!made.ok()) SendEnd(OutOfMemoryEnd());
  thread().Add(*this);
  if (!made.ok()) return;
  const absl::Status begun = Guarded([this] { return Begin(); });
  if (!begun.ok()) Reject(begun);
}

void Exchange::OnEnd(bool /*ok*/) {
  ClearTakeDeadline();
  EndOperation();
}

void Exchange::OnDone(bool /*ok*/) {
  if (context_.IsCancelled()) {
    cancelled_.request_stop();
    OnCallerGone();
  }
  EndOperation();
}

}  // namespace simile::service
