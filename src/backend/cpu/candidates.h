#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/rescorer.h"
#include "base/page_buffer.h"
#include "simile/rank_key.h"

namespace simile::backend::cpu {

// A row that the first stage could not drop. Its canonical score lies in lower .. upper, and is
// known when these are equal.
struct Candidate {
  std::uint32_t index = 0;  // of the segment's rows
  float lower = 0;
  float upper = 0;

  bool known() const { return lower == upper; }
  void SetScore(float score) { lower = upper = score; }
};

// How a gate is set: the rank-th best candidate's cheap score less `caution` of its bound. Rank k
// with caution 1 is proven, because k rows are certain to reach it; anything else is a guess.
struct Guess {
  std::size_t rank = 0;  // certificate/speculative_rank.h
  float caution = 1;     // 0 .. 1
};

// What one thread selects candidates with; only grows.
class CandidateScratch {
 public:
  // Allocates for selections among this many candidates. Throws std::bad_alloc.
  void Reserve(std::size_t candidates_max) {
    candidates_max_ = candidates_max;
    buffer_.Reserve((candidates_max + kScoresPerStep) * 2 * sizeof(RankKey));
  }
  // Space for their scores, and kScoresPerStep more; or for their rank keys, twice.
  std::int32_t* scores() const { return buffer_.As<std::int32_t>(); }
  RankKey* keys() const { return buffer_.As<RankKey>(); }
  RankKey* more_keys() const { return keys() + candidates_max_; }

  // Scores are counted so many at a time: whole registers on every processor.
  static constexpr std::size_t kScoresPerStep = 16;

 private:
  std::size_t candidates_max_ = 0;
  base::PageBuffer buffer_;
};

// The rows seen by one thread that may still be among a query's k best. A row may be dropped once
// its upper bound lies strictly below a threshold that k rows are known to reach. The gate is that
// threshold, or a guess at it that the end of the search verifies. Borrows its buffer; used by one
// thread at a time.
class Candidates {
 public:
  // How many candidates the buffer must hold to keep k of at most rows_max rows.
  static std::size_t CapacityFor(std::size_t k, std::size_t rows_max);

  Candidates() = default;
  // REQUIRES: k >= 1; buffer.size() >= CapacityFor(k, rows that will be offered)
  Candidates(std::span<Candidate> buffer, std::size_t k, float gate);

  // Rows whose upper bound lies below need not be offered.
  float gate() const { return gate_; }
  // Adopts the gate of another thread, which has seen other rows.
  void RaiseGate(float gate) {
    if (gate > gate_) gate_ = gate;
  }

  // REQUIRES: not full().
  void Offer(const Candidate& candidate) {
    if (candidate.upper >= gate_) buffer_[size_++] = candidate;
  }
  // Whether it needs MakeSpace before the next Offer.
  bool full() const { return size_ == buffer_.size(); }
  void MakeSpace(const Guess& guess, const Rescorer& rescorer, const CandidateScratch& scratch);
  // Whether enough candidates arrived since the last Tighten for another one to pay.
  bool due() const { return size_ >= due_; }
  // Raises the gate by the candidates so far and drops those below it.
  //   scratch  reserved for the buffer's size
  void Tighten(const Guess& guess, const CandidateScratch& scratch);

  std::span<const Candidate> all() const { return buffer_.first(size_); }

 private:
  void DropBelowGate();

  std::span<Candidate> buffer_;
  std::size_t size_ = 0;
  std::size_t due_ = 0;
  std::size_t k_ = 0;
  float gate_ = 0;
};

// How a query's k best are found among its candidates: those with the k greatest lower bounds are
// scored first, because k rows then reach the least of their scores; that drops most of the others
// without a score; what is left is scored and ranked. The scores are formed between these steps, by
// the caller or by FindBest.
//   scratch  reserved for the candidates

// Moves the k candidates with the greatest lower bounds to the front, and those that equal the last
// of them. Returns how many these are: all where there are no more than k.
std::size_t MoveFirst(std::span<Candidate> candidates, std::size_t k,
                      const CandidateScratch& scratch);
// Drops what k rows are known to beat. Returns how many stay, in front and in any order.
//   first  how many MoveFirst moved. REQUIRES: these are scored.
std::size_t DropBeaten(std::span<Candidate> candidates, std::size_t first, std::size_t k,
                       const CandidateScratch& scratch);
// The best k, best first, in the scratch. REQUIRES: all are scored.
std::span<const RankKey> RankBest(std::span<const Candidate> candidates, std::size_t k,
                                  Row first_row, const CandidateScratch& scratch);

// All of it, for one query.
std::span<const RankKey> FindBest(std::span<Candidate> candidates, std::size_t k,
                                  const Rescorer& rescorer, const CandidateScratch& scratch);

}  // namespace simile::backend::cpu
