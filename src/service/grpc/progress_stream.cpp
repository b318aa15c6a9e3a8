#include "service/grpc/progress_stream.h"

namespace simile::service {

ProgressExchange::ProgressExchange(ProgressMethod& method, MethodService& service, int index,
                                   net::IoThread& thread)
    : method_(method), service_(service), index_(index), thread_(thread) {
  context_.AsyncNotifyWhenDone(static_cast<net::IoEvent*>(&done_event_));
  service.RequestAsyncServerStreaming(index, &context_, &request_, &writer_, &thread.queue(),
                                      &thread.queue(), static_cast<net::IoEvent*>(&arrived_event_));
}

void ProgressExchange::OnArrived(bool ok) {
  if (!ok) {
    delete this;  // the server has shut down
    return;
  }
  AskForNext();
  if (method_.row().is_recorded) method_.environment().metrics.AddRequestsInFlight(1);
  thread_.Add(*this);
  const absl::Status made = Guarded([this] {
    Arrive();
    return absl::OkStatus();
  });
  if (!made.ok()) {
    return Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "the server is out of memory"});
  }
  const absl::Status begun = Guarded([this] { return Begin(); });
  if (!begun.ok()) Refuse(begun);
}

void ProgressExchange::AskForNext() {
  asked_for_next_ = Guarded([this] {
                      method_.Ask(service_, index_, thread_);
                      return absl::OkStatus();
                    }).ok();
}

absl::Status ProgressExchange::Begin() {
  RpcEnvironment& environment = method_.environment();
  if (thread_.stopping()) {
    environment.metrics.CountRejected(observe::Rejection::kDraining);
    return StoppingError();
  }
  if (method_.row().runs == Runs::kOnWorker) {
    return PostToWorkers(environment, [this] { Run(); });
  }
  Run();
  return absl::OkStatus();
}

void ProgressExchange::Write(absl::StatusOr<grpc::ByteBuffer> message) {
  {
    const std::lock_guard lock(mutex_);
    last_write_ = message.status();
    if (!message.ok() || broken_) return;
    if (writing_) {
      waiting_ = *std::move(message);
      return;
    }
    writing_ = true;
    current_ = *std::move(message);
  }
  writer_.Write(current_, static_cast<net::IoEvent*>(&written_event_));
}

absl::Status ProgressExchange::LastWrite() {
  const std::lock_guard lock(mutex_);
  return last_write_;
}

void ProgressExchange::End(grpc::Status status) {
  {
    const std::lock_guard lock(mutex_);
    if (!status.ok()) waiting_.reset();
    if (writing_) {
      end_ = std::move(status);
      return;
    }
  }
  Finish(status);
}

void ProgressExchange::OnWritten(bool ok) {
  bool next = false;
  {
    const std::lock_guard lock(mutex_);
    broken_ = broken_ || !ok;
    if (broken_) waiting_.reset();
    next = waiting_.has_value();
    writing_ = next;
    if (!next && !end_) return;
    if (next) current_ = *std::exchange(waiting_, std::nullopt);
  }
  // No other thread starts an operation now: a message is being sent, or the call has ended.
  if (next) {
    writer_.Write(current_, static_cast<net::IoEvent*>(&written_event_));
  } else {
    Finish(*end_);
  }
}

void ProgressExchange::Finish(const grpc::Status& status) {
  writer_.Finish(status, static_cast<net::IoEvent*>(&finished_event_));
}

void ProgressExchange::OnFinished(bool /*ok*/) { EndOne(); }

void ProgressExchange::OnDone(bool /*ok*/) {
  if (context_.IsCancelled()) cancelled_.request_stop();
  EndOne();
}

void ProgressExchange::EndOne() {
  if (++ends_ < 2) return;
  if (!asked_for_next_) AskForNext();
  thread_.Remove(*this);
  if (method_.row().is_recorded) method_.environment().metrics.AddRequestsInFlight(-1);
  delete this;
}

}  // namespace simile::service
