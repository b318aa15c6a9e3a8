#include "service/grpc/progress_stream.h"

#include <cstddef>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"

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

ProgressExchange::ProgressExchange(Method& method) : Exchange(method) {
  const Method::Source& source = method.source();
  grpc::ServerCompletionQueue& queue = source.thread.queue();
  source.service.RequestAsyncServerStreaming(source.index, &context(), &request_, &writer_, &queue,
                                             &queue, arrived_tag());
}

absl::Status ProgressExchange::Begin() {
  const std::size_t bytes = request_.Length();
  absl::Status admitted = Admit(bytes);
  if (!admitted.ok()) return admitted;
  if (bytes > kParsedAtOnceBytesMax) return TooLongError(bytes);
  return Handle([this] { Run(); }, caller(), bytes);
}

absl::Status ProgressExchange::ParseRequest(google::protobuf::Message& request) {
  return ParseMessage(request_, request);
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
  SendEnd(status);
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
    SendEnd(*end_);
  }
}

void ProgressExchange::WriteCurrent() {
  ExpectTaken(environment().clock.Now());
  writer_.Write(current_, written_event_.tag());
}

void ProgressExchange::SendEnd(const grpc::Status& status) {
  ExpectTaken(environment().clock.Now());
  writer_.Finish(status, end_tag());
}

}  // namespace simile::service
