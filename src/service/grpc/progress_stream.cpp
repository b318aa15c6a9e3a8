#include "service/grpc/progress_stream.h"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"

namespace simile::service {
namespace {

// The requests of these methods only name a collection and a folder.
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
  std::unique_lock lock(mutex_);
  last_write_ = message.status();
  if (!message.ok() || broken_) return;
  waiting_ = *std::move(message);
  SendNext(std::move(lock));
}

absl::Status ProgressExchange::LastWrite() {
  const std::lock_guard lock(mutex_);
  return last_write_;
}

void ProgressExchange::End(net::CallEnd end) {
  std::unique_lock lock(mutex_);
  if (end.code != absl::StatusCode::kOk) waiting_.reset();
  end_ = std::move(end);
  SendNext(std::move(lock));
}

void ProgressExchange::Sent(bool ok) {
  std::unique_lock lock(mutex_);
  writing_ = false;
  broken_ = broken_ || !ok;
  if (broken_) waiting_.reset();
  SendNext(std::move(lock));
}

void ProgressExchange::SendNext(std::unique_lock<std::mutex> lock) {
  if (writing_ || (waiting_ == nullptr && !end_)) return;
  ReplyMessage message = std::exchange(waiting_, nullptr);
  writing_ = message != nullptr;
  lock.unlock();  // the call may be gone as soon as it is finished
  const Clock::TimePoint take_by = TakeBy(environment().clock.Now());
  if (message != nullptr) return Send(std::move(message), take_by);
  Finish(nullptr, *std::move(end_), take_by);
}

}  // namespace simile::service
