#include "service/requests/stream_requests.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

#include "base/message_text.h"
#include "service/requests/request_fields.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

absl::Status RefuseTimeout(const google::protobuf::Duration& timeout, const Limits& limits) {
  return Refuse({"timeout"}, "{} s and {} ns; give more than 0 and up to {} ms", timeout.seconds(),
                timeout.nanos(),
                base::Grouped(static_cast<std::uint64_t>(limits.search_deadline_max.count())));
}

}  // namespace

absl::StatusOr<Clock::Duration> ValidateTimeout(const v1::SearchStreamRequest& request,
                                                const Limits& limits) {
  if (!request.has_timeout()) return limits.search_deadline_default;
  const google::protobuf::Duration& timeout = request.timeout();
  constexpr std::int32_t kNanosMax = 999'999'999;
  const std::int64_t seconds_max =
      std::chrono::duration_cast<std::chrono::seconds>(limits.search_deadline_max).count();
  if (timeout.seconds() < 0 || timeout.seconds() > seconds_max || timeout.nanos() < 0 ||
      timeout.nanos() > kNanosMax) {
    return RefuseTimeout(timeout, limits);
  }
  const auto duration =
      std::chrono::seconds(timeout.seconds()) + std::chrono::nanoseconds(timeout.nanos());
  if (duration <= duration.zero() || duration > limits.search_deadline_max) {
    return RefuseTimeout(timeout, limits);
  }
  return duration;
}

absl::Status StreamOrder::Agree(const v1::SearchStreamRequest& request) {
  constexpr FieldPath kField{"answer_order"};
  const v1::AnswerOrder asked = request.answer_order();
  const bool first = !as_completed_.has_value();
  if (first) as_completed_ = asked == v1::ANSWER_ORDER_AS_COMPLETED;
  if (!v1::AnswerOrder_IsValid(asked)) {
    return RefuseEnum(kField, asked, "ANSWER_ORDER_AS_SENT or ANSWER_ORDER_AS_COMPLETED");
  }
  const bool same = (asked == v1::ANSWER_ORDER_AS_COMPLETED) == *as_completed_;
  if (same || asked == v1::ANSWER_ORDER_UNSPECIFIED) return absl::OkStatus();
  return Refuse(kField,
                "{}, but the first message of the stream chose {}; leave it out in later ones",
                v1::AnswerOrder_Name(asked),
                *as_completed_ ? "ANSWER_ORDER_AS_COMPLETED" : "ANSWER_ORDER_AS_SENT");
}

std::uint64_t ReplyBytesMax(const v1::SearchStreamRequest& request, const Limits& limits) {
  const v1::SearchOptions& options =
      request.has_recommend() ? request.recommend().options() : request.search().options();
  // A larger maximum than is allowed is refused later, as in a call of its own.
  return options.has_reply_bytes_max() ? std::min(options.reply_bytes_max(), limits.reply_bytes_max)
                                       : limits.reply_bytes_default;
}

bool StreamWindow::Admits(std::uint64_t reply_bytes) const {
  if (open_.empty()) return true;
  return has_place() && reply_bytes_ + reply_bytes <= limits_.reply_bytes_max;
}

std::uint64_t StreamWindow::Add(std::uint64_t reply_bytes) {
  assert(Admits(reply_bytes));
  Request request;
  request.reply_bytes = reply_bytes;
  request.own_place.push_back(next_number());
  request.place = request.own_place.begin();
  open_.emplace(next_number(), std::move(request));
  reply_bytes_ += reply_bytes;
  return ++added_;
}

void StreamWindow::Complete(std::uint64_t number) {
  Request& request = open_.at(number);
  assert(!request.is_complete());
  completed_.splice(completed_.end(), request.own_place);
}

std::optional<std::uint64_t> StreamWindow::NextToSend() const {
  if (completed_.empty()) return std::nullopt;
  if (as_completed_) return completed_.front();
  const auto& [number, request] = *open_.begin();
  if (!request.is_complete()) return std::nullopt;
  return number;
}

void StreamWindow::Sent(std::uint64_t number) {
  const auto request = open_.find(number);
  assert(request != open_.end() && request->second.is_complete());
  reply_bytes_ -= request->second.reply_bytes;
  completed_.erase(request->second.place);
  open_.erase(request);
}

}  // namespace simile::service
