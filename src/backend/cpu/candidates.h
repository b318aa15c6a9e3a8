#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/rescorer.h"
#include "simile/rank_key.h"

namespace simile::backend::cpu {

// A row that the first stage could not drop. Its canonical score lies in lower .. upper, and is
// known when these are equal.
struct Candidate {
  std::uint32_t index = 0;  // of the segment's rows
  float lower = 0;
  float upper = 0;
};

// How a gate is set: the rank-th best candidate's cheap score less `caution` of its bound. Rank k
// with caution 1 is proven, because k rows are certain to reach it; anything else is a guess.
struct Guess {
  std::size_t rank = 0;  // certificate/speculative_rank.h
  float caution = 1;     // 0 .. 1
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
  void MakeSpace(const Guess& guess, const Rescorer& rescorer);
  // Whether enough candidates arrived since the last Tighten for another one to pay.
  bool due() const { return size_ >= due_; }
  // Raises the gate by the candidates so far and drops those below it.
  void Tighten(const Guess& guess);

  std::span<const Candidate> all() const { return buffer_.first(size_); }

 private:
  void DropBelowGate();

  std::span<Candidate> buffer_;
  std::size_t size_ = 0;
  std::size_t due_ = 0;
  std::size_t k_ = 0;
  float gate_ = 0;
};

// Scores the candidates canonically, moves the k best to the front, best first, and returns how
// many there are. Candidates that cannot be among the k best are dropped without a score.
std::size_t SelectBest(std::span<Candidate> candidates, std::size_t k, const Rescorer& rescorer);

}  // namespace simile::backend::cpu
