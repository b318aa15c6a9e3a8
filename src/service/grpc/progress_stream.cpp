#include "service/grpc/progress_stream.h"

#include <cstddef>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "service/call_work.h"

namespace simile::service {
namespace {

// Such requests name a collection and a folder.
absl::Status TooLongError(std::size_t bytes) {
  return base::Error(
      base::ErrorReason::kRequestNotParsed,
      fmt::format("the request has {} bytes; requests of this method have at most {}",
                  base::Grouped(bytes), base::Grouped(kParsedAtOnceBytesMax)));
}

}  // namespace

ProgressExchange::ProgressExchange(ProgressMethod& method, MethodService& service, int index,
                                   net::IoThread& thread)
    : method_(method), service_(service), index_(index), thread_(thread) {
  context_.AsyncNotifyWhenDone(done_event_.tag());
  service.RequestAsyncServerStreaming(index, &context_, &request_, &writer_, &thread.queue(),
                                      &thread.queue(), arrived_event_.tag());
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
    return Finish(OutOfMemoryEnd());
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
  const std::size_t bytes = request_.Length();
  if (bytes > kParsedAtOnceBytesMax) return TooLongError(bytes);
  if (method_.row().runs == Runs::kOnIoThread) {
    Run();
    return absl::OkStatus();
  }
  const absl::Status posted =
      PostToWorkers(environment.workers, [this] { Run(); }, {caller(), bytes});
  CountRefusal(environment.metrics, posted);
  return posted;
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
  WriteCurrent();
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
  ClearTakeDeadline();
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
    WriteCurrent();
  } else {
    Finish(*end_);
  }
}

void ProgressExchange::WriteCurrent() {
  const RpcEnvironment& environment = method_.environment();
  SetTakeDeadline(TakeDeadline(environment, environment.clock.Now()));
  writer_.Write(current_, written_event_.tag());
}

void ProgressExchange::Finish(const grpc::Status& status) {
  const RpcEnvironment& environment = method_.environment();
  SetTakeDeadline(TakeDeadline(environment, environment.clock.Now()));
  writer_.Finish(status, finished_event_.tag());
}

void ProgressExchange::OnFinished(bool /*ok*/) {
  ClearTakeDeadline();
  EndOne();
}

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
