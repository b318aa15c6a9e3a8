#include "backend/cpu/batch_finish.h"

#include <algorithm>

#include "backend/cpu/grow_to.h"

namespace simile::backend::cpu {
namespace {

// Queries that a thread claims at a time.
constexpr std::size_t kQueriesAtOnce = 4;

}  // namespace

void BatchFinish::Begin(std::span<Int8Pass* const> passes, unsigned threads) {
  List(passes);
  Reserve(threads);
  left_ = queries_;
  some_ = {};
}

bool BatchFinish::Advance(ThreadPool& pool, const Int8Segment& segment, const Turn& turn) {
  for (;;) {
    if (!some_.empty() && !AdvanceSome(pool, segment, turn)) return false;
    if (left_.empty()) return true;
    TakeSome();
  }
}

std::uint64_t BatchFinish::bytes() const { return candidates_.bytes() + scorer_.bytes(); }

void BatchFinish::TakeSome() {
  std::size_t count = 0;
  std::size_t candidates = 0;
  Candidate* to = candidates_.As<Candidate>();
  while (count < left_.size() &&
         (count == 0 || candidates + left_[count].candidate_count <= candidates_together_)) {
    Query& query = left_[count++];
    query.all = {to + candidates, query.candidate_count};
    candidates += query.candidate_count;
  }
  some_ = left_.first(count);
  left_ = left_.subspan(count);
  steps_.Reset();
  claimed_.Reset();
}

void BatchFinish::List(std::span<Int8Pass* const> passes) {
  queries_.clear();
  for (Int8Pass* pass : passes) {
    for (std::size_t query = 0; query < pass->queries().size(); ++query)
      queries_.push_back({pass, query, pass->CandidateCount(query), {}});
  }
}

// For as many candidates as there may be, because their number differs from batch to batch.
void BatchFinish::Reserve(unsigned threads) {
  std::size_t of_one = 0;
  for (const Query& query : queries_)
    of_one = std::max(of_one, query.pass->CandidatesMax(query.query_of_pass));
  const std::size_t together = std::max(candidates_together_, of_one);
  candidates_.Reserve(together * sizeof(Candidate));
  GrowTo(scratch_, threads);
  for (CandidateScratch& scratch : scratch_) scratch.Reserve(of_one);
  GrowTo(to_score_, queries_.size());
  scorer_.Reserve(together, threads);
}

template <class Work>
bool BatchFinish::ForEach(ThreadPool& pool, const Turn& turn, Work work) {
  auto job = [&](unsigned participant) {
    claimed_.Claim(turn, some_.size(), kQueriesAtOnce, [&](std::size_t first, std::size_t end) {
      for (std::size_t i = first; i < end; ++i) work(some_[i], to_score_[i], scratch_[participant]);
    });
  };
  pool.Run(job);
  if (!claimed_.AreDone(some_.size())) return false;
  claimed_.Reset();
  return true;
}

bool BatchFinish::AdvanceSome(ThreadPool& pool, const Int8Segment& segment, const Turn& turn) {
  const auto wanted = [](const Query& query) {
    return query.pass->HitsWanted(query.query_of_pass);
  };
  const auto copy = [&](Query& query, auto& to_score, CandidateScratch& scratch) {
    query.all = query.all.first(query.pass->CopyCandidates(query.query_of_pass, query.all.data()));
    query.first = MoveExpectedFirst(query.all, wanted(query), scratch);
    to_score = {query.pass->Vector(query.query_of_pass), query.all.first(query.first)};
  };
  const auto drop = [&](Query& query, auto& to_score, CandidateScratch& scratch) {
    query.rescored = to_score.scored;
    query.all = query.all.first(DropBeaten(query.all, query.first, wanted(query), scratch));
    to_score.candidates = query.all;
  };
  const auto answer = [&](Query& query, auto& to_score, CandidateScratch& scratch) {
    query.pass->WriteAnswer(query.query_of_pass,
                            RankBest(query.all, wanted(query), segment.rows.first_row, scratch),
                            query.rescored + to_score.scored);
  };
  const auto each_then_begin = [&](const auto& work) {
    if (!ForEach(pool, turn, work)) return false;
    scorer_.Begin(segment.rows.rows, std::span(to_score_).first(some_.size()));
    return true;
  };
  const auto score = [&] { return scorer_.Advance(pool, segment.canonical, turn); };
  return steps_.Do(0, [&] { return each_then_begin(copy); }) && steps_.Do(1, score) &&
         steps_.Do(2, [&] { return each_then_begin(drop); }) && steps_.Do(3, score) &&
         steps_.Do(4, [&] { return ForEach(pool, turn, answer); });
}

}  // namespace simile::backend::cpu
