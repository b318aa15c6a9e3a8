#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "backend/cpu/rescorer.h"
#include "base/memory_pages.h"
#include "simile/rank_key.h"

namespace simile::backend::cpu {

// One pass of a radix sort: copies the items in ascending order of their digits. Items with equal
// digits keep their order.
//   to        [from.size()]  written; not `from`
//   digit_of  of an item, below 2^kBits
template <unsigned kBits, class Item, class DigitOf>
void SortByDigit(std::span<const Item> from, Item* to, DigitOf digit_of) {
  std::array<std::uint32_t, std::size_t{1} << kBits> next{};
  for (const Item& item : from) ++next[digit_of(item)];
  std::uint32_t sum = 0;
  for (std::uint32_t& first : next) sum += std::exchange(first, sum);
  for (const Item& item : from) to[next[digit_of(item)]++] = item;
}

// A row that the first stage could not drop. Its canonical score is in lower .. upper, and is known
// when lower equals upper.
struct Candidate {
  std::uint32_t index = 0;  // of the segment's rows
  float lower = 0;
  float upper = 0;

  bool known() const { return lower == upper; }
  void SetScore(float score) { lower = upper = score; }
};

// How a gate is set: the rank-th best candidate's cheap score minus `caution` times its bound. Rank
// k with caution 1 is proven, because k rows are certain to reach the gate; any other gate is a
// guess.
struct Guess {
  std::size_t rank = 0;  // certificate/top_k.h
  float caution = 1;     // 0 .. 1
};

// The buffer with which one thread selects candidates.
class CandidateScratch {
 public:
  // Scores are counted this many at a time: whole registers on every processor.
  static constexpr std::size_t kScoresPerStep = 16;

  // Allocates for selections among this many candidates. The buffer only grows. Throws
  // std::bad_alloc.
  void Reserve(std::size_t candidates_max) {
    candidates_max_ = candidates_max;
    buffer_.Reserve((candidates_max + kScoresPerStep) * 2 * sizeof(RankKey));
  }
  // Space for the candidates' scores and kScoresPerStep more; or for two arrays of their rank keys.
  std::int32_t* scores() { return buffer_.As<std::int32_t>(); }
  RankKey* keys() { return buffer_.As<RankKey>(); }
  RankKey* more_keys() { return keys() + candidates_max_; }

 private:
  std::size_t candidates_max_ = 0;
  base::PageBuffer buffer_;
};

// The rows seen by one thread that may still be among a query's k best. A row may be dropped once
// its upper bound is strictly below a threshold that k rows are known to reach. The gate is this
// threshold, or a guess that the end of the search verifies. Borrows its buffer; used by one thread
// at a time.
class Candidates {
 public:
  // The candidates that the buffer must hold to keep k of at most rows_max rows, when `threads`
  // threads divide the rows.
  static std::size_t CapacityFor(std::size_t k, std::size_t rows_max, std::size_t threads = 1);

  Candidates() = default;
  // REQUIRES: k >= 1; buffer.size() >= CapacityFor(k, rows that will be offered)
  Candidates(std::span<Candidate> buffer, std::size_t k, float gate);

  // Rows whose upper bound is below the gate need not be offered.
  float gate() const { return gate_; }
  // Adopts the gate of another thread, which has seen other rows.
  void RaiseGate(float gate) {
    if (gate > gate_) gate_ = gate;
  }

  // REQUIRES: not full().
  void Offer(const Candidate& candidate) {
    if (candidate.upper >= gate_) buffer_[size_++] = candidate;
  }
  // Whether MakeSpace is needed before the next Offer.
  bool full() const { return size_ == buffer_.size(); }
  void MakeSpace(const Guess& guess, const Rescorer& rescorer, CandidateScratch& scratch);
  // Whether enough candidates arrived since the last Tighten for another Tighten to pay.
  bool due() const { return size_ >= due_; }
  // Raises the gate by the candidates so far and drops the candidates below it.
  //   scratch  reserved for the buffer's size
  void Tighten(const Guess& guess, CandidateScratch& scratch);

  std::span<const Candidate> all() const { return buffer_.first(size_); }

 private:
  void DropBelowGate();

  std::span<Candidate> buffer_;
  std::size_t size_ = 0;
  std::size_t due_ = 0;
  std::size_t k_ = 0;
  float gate_ = 0;
};

// The functions below find a query's k best among its candidates. Candidates that are expected to
// be among the k best are scored first. Candidates that k of these scores beat are dropped. The
// rest is scored, and all are ranked. Any choice of the first candidates is correct; a good choice
// leaves little to score after the drop. The scores are formed between these steps, by the caller
// or by ScoreBest and FindBest.
// REQUIRES for all: k >= 1, and the scratch is reserved for the candidates.

// Moves the candidates whose upper bound reaches the expected k-th best score to the front. Returns
// their number: at least k, or all candidates when there are fewer.
std::size_t MoveExpectedFirst(std::span<Candidate> candidates, std::size_t k,
                              CandidateScratch& scratch);
// Drops the candidates that k rows are known to beat. Returns how many stay, in front and in their
// order.
//   first  the number that MoveExpectedFirst returned. REQUIRES: these candidates are scored.
std::size_t DropBeaten(std::span<Candidate> candidates, std::size_t first, std::size_t k,
                       CandidateScratch& scratch);
// The best k, best first. Valid until the next use of the scratch. REQUIRES: all are scored.
std::span<const RankKey> RankBest(std::span<const Candidate> candidates, std::size_t k,
                                  Row first_row, CandidateScratch& scratch);

// Scores the candidates that may be among the k best and drops the rest. Returns how many stay, in
// front.
std::size_t ScoreBest(std::span<Candidate> candidates, std::size_t k, const Rescorer& rescorer,
                      CandidateScratch& scratch);
// Does all steps. Returns as RankBest.
std::span<const RankKey> FindBest(std::span<Candidate> candidates, std::size_t k,
                                  const Rescorer& rescorer, CandidateScratch& scratch);

}  // namespace simile::backend::cpu
