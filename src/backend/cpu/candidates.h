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

// One pass of a radix sort: copies the items in ascending order of their digits, those of one digit
// in the order that they have.
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
  std::size_t rank = 0;  // certificate/top_k.h
  float caution = 1;     // 0 .. 1
};

// What one thread selects candidates with.
class CandidateScratch {
 public:
  // Scores are counted so many at a time: whole registers on every processor.
  static constexpr std::size_t kScoresPerStep = 16;

  // Allocates for selections among this many candidates; it only grows. Throws std::bad_alloc.
  void Reserve(std::size_t candidates_max) {
    candidates_max_ = candidates_max;
    buffer_.Reserve((candidates_max + kScoresPerStep) * 2 * sizeof(RankKey));
  }
  // Space for their scores, and kScoresPerStep more; or for their rank keys, twice.
  std::int32_t* scores() { return buffer_.As<std::int32_t>(); }
  RankKey* keys() { return buffer_.As<RankKey>(); }
  RankKey* more_keys() { return keys() + candidates_max_; }

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
  // How many candidates the buffer must hold to keep k of at most rows_max rows, when so many
  // threads divide these.
  static std::size_t CapacityFor(std::size_t k, std::size_t rows_max, std::size_t threads = 1);

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
  void MakeSpace(const Guess& guess, const Rescorer& rescorer, CandidateScratch& scratch);
  // Whether enough candidates arrived since the last Tighten for another one to pay.
  bool due() const { return size_ >= due_; }
  // Raises the gate by the candidates so far and drops those below it.
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

// How a query's k best are found among its candidates: those that are expected to be among them are
// scored first; what k of these scores beat is dropped; the rest is scored, and all are ranked. Any
// choice of the first is correct; a good one leaves little to score after the drop. The scores are
// formed between these steps, by the caller or by ScoreBest and FindBest.
// REQUIRES for all: k >= 1, and the scratch is reserved for the candidates.

// Moves the candidates whose upper bound reaches the expected k-th best score to the front. Returns
// how many they are: at least k, or all where there are no more.
std::size_t MoveExpectedFirst(std::span<Candidate> candidates, std::size_t k,
                              CandidateScratch& scratch);
// Drops what k rows are known to beat. Returns how many stay, in front and in their order.
//   first  how many MoveExpectedFirst moved. REQUIRES: these are scored.
std::size_t DropBeaten(std::span<Candidate> candidates, std::size_t first, std::size_t k,
                       CandidateScratch& scratch);
// The best k, best first, in the scratch until its next use. REQUIRES: all are scored.
std::span<const RankKey> RankBest(std::span<const Candidate> candidates, std::size_t k,
                                  Row first_row, CandidateScratch& scratch);

// Scores what may be among the k best and drops the rest. Returns how many stay, in front.
std::size_t ScoreBest(std::span<Candidate> candidates, std::size_t k, const Rescorer& rescorer,
                      CandidateScratch& scratch);
// All steps; returns what RankBest does.
std::span<const RankKey> FindBest(std::span<Candidate> candidates, std::size_t k,
                                  const Rescorer& rescorer, CandidateScratch& scratch);

}  // namespace simile::backend::cpu
