#include "service/stream_window.h"

#include <cassert>
#include <utility>

namespace simile::service {

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
