#include "engine/answers.h"

#include <utility>

namespace simile::engine {

std::function<void(absl::StatusOr<SearchAnswer>)> Answers::For(int number) {
  return [this, number](absl::StatusOr<SearchAnswer> answer) {
    const std::lock_guard lock(mutex_);
    answers_.emplace(number, Answer{std::move(answer), std::this_thread::get_id()});
    arrived_.notify_all();
  };
}

Answers::Answer Answers::Await(int number) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return answers_.count(number) > 0; });
  return answers_.find(number)->second;
}

std::size_t Answers::CountAnswers(int number) const {
  const std::lock_guard lock(mutex_);
  return answers_.count(number);
}

}  // namespace simile::engine
