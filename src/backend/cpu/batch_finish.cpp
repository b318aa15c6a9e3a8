#include "backend/cpu/batch_finish.h"

#include <algorithm>
#include <atomic>

#include "backend/cpu/grow_to.h"

namespace simile::backend::cpu {
namespace {

// Candidates that are scored together at most, or those of one query. They take 28 bytes each,
// which are kept for the next batch.
constexpr std::size_t kCandidatesTogether = 1U << 20;
// Queries that a thread claims at a time.
constexpr std::size_t kQueriesAtOnce = 4;

}  // namespace

void BatchFinish::Add(Int8Pass& pass) {
  for (std::size_t number = 0; number < pass.queries().size(); ++number) {
    queries_.push_back({&pass, number, pass.CandidateCount(number), {}});
  }
}

void BatchFinish::Run(ThreadPool& pool, const certificate::CanonicalKernel& kernel,
                      const SegmentRows& rows) {
  Reserve(pool.thread_count());
  std::span<Query> left = queries_;
  while (!left.empty()) {
    std::size_t count = 0;
    std::size_t candidates = 0;
    while (count < left.size() &&
           (count == 0 || candidates + left[count].candidate_count <= kCandidatesTogether)) {
      candidates += left[count++].candidate_count;
    }
    RunSome(pool, kernel, rows, left.first(count));
    left = left.subspan(count);
  }
}

// For as many candidates as there may be, because their number differs from batch to batch.
void BatchFinish::Reserve(unsigned threads) {
  std::size_t of_one = 0;
  for (const Query& query : queries_)
    of_one = std::max(of_one, query.pass->CandidatesMax(query.number));
  const std::size_t all = std::max(kCandidatesTogether, of_one);
  candidates_.Reserve(all * sizeof(Candidate));
  GrowTo(scratch_, threads);
  for (CandidateScratch& scratch : scratch_) scratch.Reserve(of_one);
  GrowTo(wanted_, queries_.size());
  scorer_.Reserve(all, threads);
}

template <class Work>
void BatchFinish::ForEach(ThreadPool& pool, std::span<Query> queries, Work work) {
  std::atomic<std::size_t> next{0};
  auto job = [&](unsigned participant) {
    ClaimParts(next, queries.size(), kQueriesAtOnce, [&](std::size_t first, std::size_t end) {
      for (std::size_t i = first; i < end; ++i) work(queries[i], wanted_[i], scratch_[participant]);
    });
  };
  pool.Run(job);
}

void BatchFinish::RunSome(ThreadPool& pool, const certificate::CanonicalKernel& kernel,
                          const SegmentRows& rows, std::span<Query> queries) {
  Candidate* to = candidates_.As<Candidate>();
  for (Query& query : queries) {
    query.candidates = {to, query.candidate_count};
    to += query.candidate_count;
  }
  const std::span<RowOrderScorer::Query> wanted = std::span(wanted_).first(queries.size());

  ForEach(pool, queries, [](Query& query, auto& scored, const CandidateScratch& scratch) {
    const std::size_t count = query.pass->CopyCandidates(query.number, query.candidates.data());
    query.candidates = query.candidates.first(count);
    query.first = MoveFirst(query.candidates, query.pass->HitsWanted(query.number), scratch);
    scored = {query.pass->Vector(query.number), query.candidates.first(query.first)};
  });
  scorer_.Run(pool, kernel, rows.rows, wanted);
  ForEach(pool, queries, [](Query& query, auto& scored, const CandidateScratch& scratch) {
    query.rescored = scored.unknown;
    query.candidates = query.candidates.first(
        DropBeaten(query.candidates, query.first, query.pass->HitsWanted(query.number), scratch));
    scored.candidates = query.candidates;
  });
  scorer_.Run(pool, kernel, rows.rows, wanted);
  ForEach(pool, queries, [&](Query& query, auto& scored, const CandidateScratch& scratch) {
    query.pass->WriteAnswer(
        query.number,
        RankBest(query.candidates, query.pass->HitsWanted(query.number), rows.first_row, scratch),
        query.rescored + scored.unknown);
  });
}

}  // namespace simile::backend::cpu
