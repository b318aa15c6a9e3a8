#include "service/grpc/progress_stream.h"

#include <cstddef>
#include <utility>

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

absl::Status ProgressExchange::BeginWith(net::ReceivedMessage request) {
  const std::size_t bytes = request.size();
  absl::Status admitted = Admit(bytes);
  if (!admitted.ok()) return admitted;
  if (bytes > kParsedAtOnceBytesMax) return TooLongError(bytes);
  request_ = std::move(request);
  return Handle([this] { RunHandler(); }, caller(), bytes);
}

absl::Status ProgressExchange::ParseRequest(google::protobuf::Message& request) {
  const net::ReceivedMessage bytes = std::move(request_);
  return ParseMessage(bytes.text(), request);
}

void ProgressExchange::Write(absl::StatusOr<ReplyMessage> message) {
  {
    const std::lock_guard lock(mutex_);
    last_write_ = message.status();
    if (!message.ok() || broken_) return;
    if (writing_) {
      waiting_ = *std::move(message);
      return;
    }
    writing_ = true;
  }
  SendMessage(*std::move(message));
}

absl::Status ProgressExchange::LastWrite() {
  const std::lock_guard lock(mutex_);
  return last_write_;
}

void ProgressExchange::End(net::CallEnd end) {
  {
    const std::lock_guard lock(mutex_);
    if (end.code != absl::StatusCode::kOk) waiting_.reset();
    if (writing_) {
      end_ = std::move(end);
      return;
    }
  }
  SendEnd(std::move(end));
}

void ProgressExchange::Sent(bool ok) {
  ReplyMessage next;
  {
    const std::lock_guard lock(mutex_);
    broken_ = broken_ || !ok;
    if (broken_) waiting_.reset();
    next = std::exchange(waiting_, nullptr);
    writing_ = next != nullptr;
    if (!writing_ && !end_) return;
  }
  // No other thread sends now: a message is being sent, or the call has ended.
  if (next != nullptr) {
    SendMessage(std::move(next));
  } else {
    SendEnd(*std::move(end_));
  }
}

void ProgressExchange::SendMessage(ReplyMessage message) {
  Send(std::move(message), TakeBy(environment().clock.Now()));
}

void ProgressExchange::SendEnd(net::CallEnd end) {
  Finish(nullptr, std::move(end), TakeBy(environment().clock.Now()));
}

}  // namespace simile::service
