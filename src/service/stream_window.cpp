#include "service/stream_window.h"

#include <cassert>

namespace simile::service {

bool StreamWindow::Admits(std::uint64_t reply_bytes) const {
  if (open_.empty()) return true;
  return has_place() && reply_bytes_ + reply_bytes <= limits_.reply_bytes_max;
}

std::uint64_t StreamWindow::Add(std::uint64_t reply_bytes) {
  assert(Admits(reply_bytes));
  reply_bytes_ += reply_bytes;
  open_.emplace(++added_, Request{reply_bytes, 0});
  return added_;
}

void StreamWindow::Complete(std::uint64_t number) {
  Request& request = open_.at(number);
  assert(request.completion == 0);
  request.completion = ++completed_;
  by_completion_.emplace(request.completion, number);
}

std::optional<std::uint64_t> StreamWindow::NextToSend() const {
  if (by_completion_.empty()) return std::nullopt;
  if (as_completed_) return by_completion_.begin()->second;
  const auto& [number, request] = *open_.begin();
  if (request.completion == 0) return std::nullopt;
  return number;
}

void StreamWindow::Sent(std::uint64_t number) {
  const auto request = open_.find(number);
  assert(request != open_.end() && request->second.completion != 0);
  reply_bytes_ -= request->second.reply_bytes;
  by_completion_.erase(request->second.completion);
  open_.erase(request);
}

}  // namespace simile::service
