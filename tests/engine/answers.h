#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "engine/queue/executor.h"

namespace simile::engine {

// Collects an executor's answers by the number that the test gives each task.
class Answers {
 public:
  struct Answer {
    absl::StatusOr<SearchAnswer> answer;
    std::thread::id thread;
  };

  // The `done` of task `number`.
  std::function<void(absl::StatusOr<SearchAnswer>)> For(int number);

  // The answer to a task, waiting for it.
  Answer Await(int number);
  // How often a task was answered, without waiting.
  std::size_t CountAnswers(int number) const;
  // Every answer so far, by number. REQUIRES: the executor has ended.
  const std::multimap<int, Answer>& all() const { return answers_; }

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::multimap<int, Answer> answers_;
};

}  // namespace simile::engine
