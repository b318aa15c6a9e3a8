#include "service/grpc/progress_stream.h"

namespace simile::service {

void ProgressWriter::Write(absl::StatusOr<grpc::ByteBuffer> message) {
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
  StartWrite(&current_);
}

absl::Status ProgressWriter::LastWrite() {
  const std::lock_guard lock(mutex_);
  return last_write_;
}

void ProgressWriter::End(grpc::Status status) {
  {
    const std::lock_guard lock(mutex_);
    if (!status.ok()) waiting_.reset();
    if (writing_) {
      end_ = std::move(status);
      return;
    }
  }
  Finish(std::move(status));
}

void ProgressWriter::OnWriteDone(bool sent) {
  bool next = false;
  {
    const std::lock_guard lock(mutex_);
    broken_ = broken_ || !sent;
    if (broken_) waiting_.reset();
    next = waiting_.has_value();
    writing_ = next;
    if (!next && !end_) return;
    if (next) current_ = *std::exchange(waiting_, std::nullopt);
  }
  // No other thread starts an operation now: a message is being sent, or the call has ended.
  if (next) {
    StartWrite(&current_);
  } else {
    Finish(*std::move(end_));
  }
}

}  // namespace simile::service
