#include "backend/cpu/batch_finish.h"

#include <algorithm>
#include <atomic>

#include "backend/cpu/grow_to.h"

namespace simile::backend::cpu {
namespace {

// Queries that a thread claims at a time.
constexpr std::size_t kQueriesAtOnce = 4;

}  // namespace

void BatchFinish::Run(ThreadPool& pool, const Int8Segment& segment,
                      std::span<Int8Pass* const> passes) {
  List(passes);
  Reserve(pool.thread_count());
  std::span<Query> left = queries_;
  while (!left.empty()) {
    std::size_t count = 0;
    std::size_t candidates = 0;
    while (count < left.size() &&
           (count == 0 || candidates + left[count].candidate_count <= candidates_together_)) {
      candidates += left[count++].candidate_count;
    }
    RunSome(pool, segment, left.first(count));
    left = left.subspan(count);
  }
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
void BatchFinish::ForEach(ThreadPool& pool, std::span<Query> queries, Work work) {
  std::atomic<std::size_t> next{0};
  auto job = [&](unsigned participant) {
    ClaimParts(next, queries.size(), kQueriesAtOnce, [&](std::size_t first, std::size_t end) {
      for (std::size_t i = first; i < end; ++i)
        work(queries[i], to_score_[i], scratch_[participant]);
    });
  };
  pool.Run(job);
}

void BatchFinish::RunSome(ThreadPool& pool, const Int8Segment& segment, std::span<Query> queries) {
  Candidate* to = candidates_.As<Candidate>();
  for (Query& query : queries) {
    query.all = {to, query.candidate_count};
    to += query.candidate_count;
  }
  const auto wanted = [](const Query& query) {
    return query.pass->HitsWanted(query.query_of_pass);
  };
  const auto score = [&] {
    scorer_.Run(pool, segment.canonical, segment.rows.rows,
                std::span(to_score_).first(queries.size()));
  };

  ForEach(pool, queries, [&](Query& query, auto& to_score, CandidateScratch& scratch) {
    query.all = query.all.first(query.pass->CopyCandidates(query.query_of_pass, query.all.data()));
    query.first = MoveExpectedFirst(query.all, wanted(query), scratch);
    to_score = {query.pass->Vector(query.query_of_pass), query.all.first(query.first)};
  });
  score();
  ForEach(pool, queries, [&](Query& query, auto& to_score, CandidateScratch& scratch) {
    query.rescored = to_score.scored;
    query.all = query.all.first(DropBeaten(query.all, query.first, wanted(query), scratch));
    to_score.candidates = query.all;
  });
  score();
  ForEach(pool, queries, [&](Query& query, auto& to_score, CandidateScratch& scratch) {
    query.pass->WriteAnswer(query.query_of_pass,
                            RankBest(query.all, wanted(query), segment.rows.first_row, scratch),
                            query.rescored + to_score.scored);
  });
}

}  // namespace simile::backend::cpu
