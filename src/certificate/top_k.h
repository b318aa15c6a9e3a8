#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <functional>
#include <span>

#include "simile/rank_key.h"

namespace simile::certificate {

// Keeps the k greatest rank keys of those offered. Keys are collected in a buffer of about twice k;
// when it is full, a selection keeps the best k and raises the gate. An offer costs amortised O(1)
// for any k, and one float comparison refuses most. Which keys are kept does not depend on the
// order of the offers. Borrows its buffer; used by one thread at a time.
class TopK {
 public:
  // How many keys the buffer must hold to keep k of at most offers_max offers.
  static std::size_t CapacityFor(std::size_t k, std::size_t offers_max) {
    return std::min(offers_max, k + std::max(k, kSlackMin));
  }

  TopK() = default;
  // Scores below score_threshold are refused.
  // REQUIRES: k >= 1; buffer.size() >= CapacityFor(k, offers_max) for the offers to come.
  TopK(std::span<RankKey> buffer, std::size_t k, float score_threshold)
      : buffer_(buffer), k_(k), gate_(score_threshold) {}

  // Scores below the gate are refused and need not be offered.
  float gate() const { return gate_; }

  void Offer(RankKey key) {
    if (!(key.score() >= gate_) || key <= floor_) return;
    assert(size_ < buffer_.size());
    buffer_[size_++] = key;
    if (size_ == buffer_.size()) Select();
  }

  // What is kept so far, in no order; up to buffer.size() keys, the best k among them.
  std::span<const RankKey> kept() const { return buffer_.first(size_); }

  // The best k, best first; fewer when fewer passed.
  std::span<const RankKey> Sorted() {
    Select();
    std::sort(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(size_),
              std::greater<>());
    return kept();
  }

 private:
  static constexpr std::size_t kSlackMin = 64;

  // Drops all but the best k.
  void Select() {
    if (size_ < k_) return;
    const auto kth = buffer_.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
    std::nth_element(buffer_.begin(), kth, buffer_.begin() + static_cast<std::ptrdiff_t>(size_),
                     std::greater<>());
    size_ = k_;
    floor_ = *kth;
    gate_ = floor_.score();
  }

  std::span<RankKey> buffer_;
  std::size_t size_ = 0;
  std::size_t k_ = 0;
  RankKey floor_;   // the k-th key of the last selection: only greater ones can still matter
  float gate_ = 0;  // its score, or the threshold before there was one
};

// The rank r such that the r-th best of the rows scanned so far lies below the true k-th best,
// except with probability 1e-6. Rows are stored shuffled, so those scanned are a random sample: the
// number of the k best among them is binomial with mean k * fraction, and a Poisson variable of
// that mean has the heavier tail. So r is the least number that such a variable reaches with
// probability 1e-6 or less, and at most k, which is certain. A wrong guess costs a rescan, never a
// wrong answer: the end of the search proves every answer.
//   fraction  share of the rows scanned, 0 .. 1
// Cost: O(r).
std::size_t SpeculativeRank(std::size_t k, double fraction);

}  // namespace simile::certificate
