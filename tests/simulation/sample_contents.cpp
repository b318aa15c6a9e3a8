#include "simulation/sample_contents.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/fake_segment.h"
#include "engine/queue/executor.h"
#include "engine/sample_data.h"
#include "simulation/bugs.h"
#include "simulation/primitives.h"

namespace simile::simulation {
namespace {

constexpr std::size_t kRows = 8;
constexpr std::size_t kDim = 4;
constexpr std::uint32_t kHits = 3;

struct Content {
  std::shared_ptr<const data::Dataset> dataset;
  std::shared_ptr<const filter::Filters> filters;
};

const std::array<Content, kContents>& Contents() {
  static const std::array<Content, kContents> contents = [] {
    std::array<Content, kContents> made;
    for (std::size_t content = 0; content < kContents; ++content) {
      made[content].dataset = std::make_shared<const data::Dataset>(CopyOfDataset(content));
      made[content].filters = filter::Filters::Create(*made[content].dataset, "films");
    }
    return made;
  }();
  return contents;
}

const data::Matrix& QueryVectors() {
  static const data::Matrix vectors = engine::RandomMatrix(kQueries, kDim, 77);
  return vectors;
}

using Hits = std::vector<Hit>;

Hits ToHits(const engine::QueryResult& result) {
  const std::span<const Hit> hits = result.hits.span();
  return {hits.begin(), hits.end()};
}

// [content][hard][query]
using Answers = std::array<std::array<std::array<Hits, kQueries>, 2>, kContents>;

// Asks each query alone, with nothing planted.
Answers AskAlone() {
  Answers answers;
  const Bug bug = std::exchange(planted_bug, Bug::kNone);
  Simulator simulator;
  const std::string failure = simulator.Run(0, [&] {
    const SimulatedClock clock;
    engine::Executor executor({}, ServedBy{{"cpu", "scan-fake", "a test"}, "a test"}, clock, {});
    for (std::size_t content = 0; content < kContents; ++content) {
      const auto snapshot =
          std::make_shared<const engine::Snapshot>(MakeGeneration(content, {}, nullptr));
      for (const bool hard : {false, true}) {
        for (std::size_t query = 0; query < kQueries; ++query) {
          Event answered;
          auto task = MakeTask(snapshot, query, 1, hard);
          task->deadline = Clock::TimePoint::max();
          task->done = [&](absl::StatusOr<engine::SearchAnswer> answer) {
            answers[content][hard ? 1 : 0][query] = ToHits(answer.value().results.front());
            answered.Set();
          };
          if (!executor.Submit(std::move(task)).ok()) simulator.Fail("refused");
          answered.Await();
        }
      }
    }
  });
  if (!failure.empty()) throw std::runtime_error("a call alone: " + failure);
  planted_bug = bug;
  return answers;
}

const Answers& AnswersAlone() {
  static const Answers answers = AskAlone();
  return answers;
}

}  // namespace

void PrepareAnswers() { AnswersAlone(); }

data::Dataset CopyOfDataset(std::size_t content) {
  data::Dataset dataset = std::move(*engine::RandomDataset(kRows, kDim, content));
  dataset.content_id = FormatId(content);
  return dataset;
}

std::shared_ptr<const data::Dataset> DatasetOf(std::size_t content) {
  return Contents()[content].dataset;
}

std::string FormatId(std::size_t content) { return fmt::format("{}", content); }

std::size_t ParseContent(const engine::Snapshot& snapshot) {
  std::size_t content = 0;
  std::from_chars(snapshot.id.data(), snapshot.id.data() + snapshot.id.size(), content);
  return content;
}

std::shared_ptr<const void> Lives::Begin() {
  ++alive_;
  return {static_cast<const void*>(this), [this](const void*) { End(); }};
}

void Lives::End() {
  --alive_;
  if (Simulator::current() == nullptr) return;
  if (simulator_.running() != nullptr && simulator_.locks_held() != 0) {
    simulator_.Fail("a snapshot is freed while a lock is held");
  }
}

engine::Snapshot MakeGeneration(std::size_t content, std::function<void()> on_piece,
                                std::shared_ptr<const void> life, const Searches& searches) {
  const Content& known = Contents()[content];
  auto segment =
      std::make_shared<engine::FakeSegment>(known.dataset->vectors.view(), 0, std::move(life));
  if (searches.pieces > 1) segment->on_piece = on_piece;
  segment->on_search = std::move(on_piece);
  segment->pieces = searches.pieces;
  segment->status = searches.status;
  segment->starts = searches.start;
  segment->on_start = searches.on_start;
  segment->on_abandon = searches.on_abandon;
  engine::Snapshot snapshot;
  snapshot.id = known.dataset->content_id;
  snapshot.dataset = known.dataset;
  snapshot.filters = known.filters;
  snapshot.segments.push_back(std::move(segment));
  return snapshot;
}

std::unique_ptr<engine::SearchTask> MakeTask(engine::SnapshotPtr snapshot, std::size_t first,
                                             std::size_t count, bool hard) {
  auto task = std::make_unique<engine::SearchTask>();
  task->snapshot = std::move(snapshot);
  task->vectors = data::Matrix::Create(count, kDim).value();
  for (std::size_t i = 0; i < count; ++i) {
    std::ranges::copy(QueryVectors().view()[first + i], task->vectors.MutableRow(i));
  }
  task->queries.resize(count);
  for (engine::ResolvedQuery& query : task->queries) {
    query.k = kHits;
    query.score_threshold = -2;
    if (hard) query.diversity = engine::Diversity{.lambda = 0.5F, .candidates = 5};
  }
  return task;
}

std::string CheckResults(std::size_t content, std::size_t first, bool hard,
                         const std::vector<engine::QueryResult>& results) {
  const Answers& answers = AnswersAlone();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Hits hits = ToHits(results[i]);
    if (hits == answers[content][hard ? 1 : 0][first + i]) continue;
    for (std::size_t other = 0; other < kContents; ++other) {
      if (hits == answers[other][hard ? 1 : 0][first + i]) {
        return fmt::format("query {} of content {} is answered from content {}", first + i, content,
                           other);
      }
    }
    return fmt::format("query {} of content {} has a wrong answer", first + i, content);
  }
  return {};
}

}  // namespace simile::simulation
