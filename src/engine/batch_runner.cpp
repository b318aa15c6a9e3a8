#include "engine/batch_runner.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

namespace simile::engine {
namespace {

// Masks that questions of one round have made for themselves.
constexpr std::size_t kMaskBytesOfARound = 128U << 20;

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
                              std::vector<absl::StatusOr<SearchAnswer>>& answers,
                              const Early& early) {
  assert(!tasks.empty());
  absl::Status status;
  try {
    status = RunRounds(tasks, answers, early);
  } catch (const std::bad_alloc&) {
    // A batch of large k can ask for much; the server outlives it.
    status = absl::ResourceExhaustedError("no memory for the batch; ask for fewer hits at a time");
  }
  pending_.clear();  // they borrow the tasks
  stand_in_ = nullptr;
  return status;
}

absl::Status BatchRunner::RunRounds(std::span<const std::unique_ptr<SearchTask>> tasks,
                                    std::vector<absl::StatusOr<SearchAnswer>>& answers,
                                    const Early& early) {
  const SnapshotPtr snapshot = tasks.front()->snapshot;
  static_cast<void>(search_.TakeStandIn());  // what a batch that failed has left
  first_stand_in_ = nullptr;
  if (absl::Status status = FirstRound(tasks); !status.ok()) return status;
  first_stand_in_ = stand_in_ = search_.TakeStandIn();
  answers.clear();
  for (const auto& task : tasks) {
    SearchAnswer answer;
    answer.answers.resize(task->questions.size());
    answers.emplace_back(std::move(answer));
  }
  TakePlain(tasks, answers);
  untold_.assign(tasks.size(), 1);
  for (;;) {
    TakePending(answers);
    if (pending_.empty()) return absl::OkStatus();
    TellOfThoseThatStand(early);
    if (absl::Status status = NextRound(*snapshot); !status.ok()) return status;
    stand_in_ = search_.TakeStandIn();
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
    const Patience patience(*tasks[i], clock_);
    ForEachQuestion(
        *tasks[i], [&](std::size_t number, const Question& question, MatrixView vectors) {
          if (question.IsPlain()) return;
          auto refinement =
              std::make_unique<Refinement>(question, vectors, snapshot, search_, patience);
          refinement->Ask(round_);
          pending_.push_back({i, number, std::move(refinement), true});
        });
  }
  if (round_.empty()) return absl::OkStatus();
  return search_.Run(snapshot.segments, round_.batch(), result_);
}

absl::Status BatchRunner::NextRound(const Snapshot& snapshot) {
  // Each may bring a mask of its own.
  const std::size_t mask_bytes = snapshot.row_count() / 8 + 1;
  const std::size_t count =
      std::min(pending_.size(), std::max<std::size_t>(1, kMaskBytesOfARound / mask_bytes));
  round_.Clear(snapshot.dim());
  for (Pending& pending : std::span(pending_).first(count)) {
    pending.refinement->Ask(round_);
    pending.asked = true;
  }
  if (round_.empty()) return absl::OkStatus();
  return search_.Run(snapshot.segments, round_.batch(), result_);
}

void BatchRunner::TakePlain(std::span<const std::unique_ptr<SearchTask>> tasks,
                            std::vector<absl::StatusOr<SearchAnswer>>& answers) {
  engines_.assign(tasks.size(), {});
  std::size_t place = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    SearchAnswer& answer = *answers[i];
    for (std::size_t number = 0; number < tasks[i]->questions.size(); ++number) {
      if (!tasks[i]->questions[number].IsPlain()) continue;
      const std::span<const Hit> hits = result_.Hits(place);
      answer.answers[number].hits.assign(hits.begin(), hits.end());
      answer.receipt.cost += result_.Cost(place);
      engines_[i].Add(result_.Engine(place));
      Note(stand_in_, answers[i]);
      ++place;
    }
    answer.receipt.engine = engines_[i].Joined();
  }
}

void BatchRunner::TakePending(std::vector<absl::StatusOr<SearchAnswer>>& answers) {
  for (Pending& pending : pending_) {
    const bool failed = !answers[pending.task].ok();  // by another of the task's questions
    if (pending.asked || failed) TakeOne(pending, answers[pending.task]);
    pending.asked = false;
  }
  std::erase_if(pending_, [](const Pending& pending) { return pending.done; });
}

// What goes wrong here is this task's affair, not the batch's.
void BatchRunner::TakeOne(Pending& pending, absl::StatusOr<SearchAnswer>& answer) {
  pending.done = true;
  if (!answer.ok()) return;
  Note(stand_in_, answer);
  absl::StatusOr<bool> stands = false;
  try {
    stands = pending.refinement->Take(result_);
  } catch (const std::bad_alloc&) {
    stands = absl::ResourceExhaustedError("no memory for the answer; ask for fewer hits at a time");
  }
  Note(search_.TakeStandIn(), answer);  // who scored for it meanwhile
  if (!stands.ok()) {
    answer = stands.status();
  } else if (*stands) {
    answer->answers[pending.question] = std::move(pending.refinement->answer());
    answer->receipt.cost += pending.refinement->cost();
    engines_[pending.task].Add(pending.refinement->engines());
    answer->receipt.engine = engines_[pending.task].Joined();
  } else {
    pending.done = false;
  }
  if (pending.done) pending.refinement.reset();  // others may go on for long
}

void BatchRunner::Note(const StandIn& stand_in, absl::StatusOr<SearchAnswer>& answer) {
  if (stand_in == nullptr || !answer->receipt.backend.empty()) return;
  observe::Receipt& receipt = answer->receipt;
  receipt.backend = stand_in->info.name;
  receipt.device = stand_in->info.device;
  receipt.reason = stand_in->reason;
}

void BatchRunner::TellOfThoseThatStand(const Early& early) {
  std::vector<char> waiting(untold_.size(), 0);
  for (const Pending& pending : pending_) waiting[pending.task] = 1;
  for (std::size_t task = 0; task < untold_.size(); ++task) {
    if (untold_[task] == 0 || waiting[task] != 0) continue;
    untold_[task] = 0;
    early(task);
  }
}

}  // namespace simile::engine
