#include "engine/batch_runner.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

namespace simile::engine {
namespace {

QuerySpec SpecOf(const Question& question) {
  return {question.k, question.mask.get(), question.excluded_rows, question.score_threshold};
}

bool AllPlain(const SearchTask& task) {
  return std::ranges::all_of(task.questions, &Question::IsPlain);
}

// Calls visit(question number, the question, its vectors) for each of a task's.
template <class Visit>
void ForEachQuestion(const SearchTask& task, Visit visit) {
  std::size_t first_vector = 0;
  for (std::size_t i = 0; i < task.questions.size(); ++i) {
    const Question& question = task.questions[i];
    visit(i, question, task.vectors.view().Slice(first_vector, question.vector_count));
    first_vector += question.vector_count;
  }
}

}  // namespace

absl::Status BatchRunner::Run(std::span<const std::unique_ptr<SearchTask>> tasks,
                              std::vector<absl::StatusOr<SearchAnswer>>& answers) {
  assert(!tasks.empty());
  absl::Status status;
  try {
    status = RunRounds(tasks, answers);
  } catch (const std::bad_alloc&) {
    // A batch of large k can ask for much; the server outlives it.
    status = absl::ResourceExhaustedError("no memory for the batch; ask for fewer hits at a time");
  }
  pending_.clear();  // they borrow the tasks
  return status;
}

absl::Status BatchRunner::RunRounds(std::span<const std::unique_ptr<SearchTask>> tasks,
                                    std::vector<absl::StatusOr<SearchAnswer>>& answers) {
  if (absl::Status status = FirstRound(tasks); !status.ok()) return status;
  answers.clear();
  for (const auto& task : tasks) {
    SearchAnswer answer;
    answer.answers.resize(task->questions.size());
    answers.emplace_back(std::move(answer));
  }
  TakePlain(tasks, answers);
  const Snapshot& snapshot = *tasks.front()->snapshot;
  for (;;) {
    if (absl::Status status = TakePending(answers); !status.ok()) return status;
    if (pending_.empty()) return absl::OkStatus();
    DropOver(tasks, answers);
    round_.Clear(snapshot.dim());
    for (Pending& pending : pending_) pending.refinement->Ask(round_);
    if (round_.empty()) continue;
    absl::Status status = search_.Run(snapshot.segments, round_.batch(), result_);
    if (!status.ok()) return status;
  }
}

absl::Status BatchRunner::FirstRound(std::span<const std::unique_ptr<SearchTask>> tasks) {
  const Snapshot& snapshot = *tasks.front()->snapshot;
  if (tasks.size() == 1 && AllPlain(*tasks.front())) {
    const SearchTask& task = *tasks.front();
    specs_.clear();
    for (const Question& question : task.questions) specs_.push_back(SpecOf(question));
    return search_.Run(snapshot.segments, {task.vectors.view(), specs_}, result_);
  }
  round_.Clear(snapshot.dim());
  for (const auto& task : tasks) {
    ForEachQuestion(*task, [&](std::size_t, const Question& question, MatrixView vectors) {
      if (question.IsPlain()) round_.Add(vectors.data(), SpecOf(question));
    });
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    ForEachQuestion(
        *tasks[i], [&](std::size_t number, const Question& question, MatrixView vectors) {
          if (question.IsPlain()) return;
          pending_.push_back(
              {i, number, std::make_unique<Refinement>(question, vectors, snapshot, search_)});
          pending_.back().refinement->Ask(round_);
        });
  }
  if (round_.empty()) return absl::OkStatus();
  return search_.Run(snapshot.segments, round_.batch(), result_);
}

void BatchRunner::TakePlain(std::span<const std::unique_ptr<SearchTask>> tasks,
                            std::vector<absl::StatusOr<SearchAnswer>>& answers) const {
  std::size_t place = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    SearchAnswer& answer = *answers[i];
    for (std::size_t number = 0; number < tasks[i]->questions.size(); ++number) {
      if (!tasks[i]->questions[number].IsPlain()) continue;
      const std::span<const Hit> hits = result_.Hits(place);
      answer.answers[number].hits.assign(hits.begin(), hits.end());
      answer.receipt.cost += result_.Cost(place);
      AddEngine(result_.Engine(place), answer.receipt.engine);
      ++place;
    }
  }
}

absl::Status BatchRunner::TakePending(std::vector<absl::StatusOr<SearchAnswer>>& answers) {
  for (Pending& pending : pending_) {
    const absl::StatusOr<bool> stands = pending.refinement->Take(result_);
    if (!stands.ok()) return stands.status();
    if (!*stands) continue;
    pending.done = true;
    SearchAnswer& answer = *answers[pending.task];
    answer.answers[pending.question] = std::move(pending.refinement->answer());
    answer.receipt.cost += pending.refinement->cost();
    AddEngine(pending.refinement->engine(), answer.receipt.engine);
  }
  std::erase_if(pending_, [](const Pending& pending) { return pending.done; });
  return absl::OkStatus();
}

void BatchRunner::DropOver(std::span<const std::unique_ptr<SearchTask>> tasks,
                           std::vector<absl::StatusOr<SearchAnswer>>& answers) {
  const Clock::TimePoint now = clock_.Now();
  for (Pending& pending : pending_) {
    const SearchTask& task = *tasks[pending.task];
    absl::StatusOr<SearchAnswer>& answer = answers[pending.task];
    if (answer.ok() && task.cancelled && task.cancelled()) {
      answer = absl::CancelledError("the caller gave up before the answer was found");
    } else if (answer.ok() && now >= task.deadline) {
      answer = absl::DeadlineExceededError("the deadline passed before the answer was found");
    }
    pending.done = !answer.ok();
  }
  std::erase_if(pending_, [](const Pending& pending) { return pending.done; });
}

}  // namespace simile::engine
