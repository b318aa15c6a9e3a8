#include "backend/cpu/candidates.h"

#include <algorithm>

namespace simile::backend::cpu {
namespace {

// Space beyond k: each selection then drops enough candidates to pay for itself.
constexpr std::size_t kSlackMin = 256;
constexpr std::size_t kDueMin = 32;

using Iterator = std::span<Candidate>::iterator;

bool ByLower(const Candidate& a, const Candidate& b) { return a.lower > b.lower; }

bool Known(const Candidate& candidate) { return candidate.lower == candidate.upper; }

void ScoreAll(std::span<Candidate> candidates, const Rescorer& rescorer) {
  ScoreInTurn(
      candidates.size(),
      [&](std::size_t i) {
        if (!Known(candidates[i])) rescorer.Prefetch(candidates[i].index);
      },
      [&](std::size_t i) {
        Candidate& candidate = candidates[i];
        if (!Known(candidate)) candidate.lower = candidate.upper = rescorer.Score(candidate.index);
      });
}

}  // namespace

std::size_t Candidates::CapacityFor(std::size_t k, std::size_t rows_max) {
  const std::size_t kept = std::min(k, rows_max);
  return std::min(rows_max, kept + std::max(kept, kSlackMin));
}

Candidates::Candidates(std::span<Candidate> buffer, std::size_t k, float gate)
    : buffer_(buffer), due_(std::max(kDueMin, k / 2)), k_(k), gate_(gate) {}

void Candidates::DropBelowGate() {
  const std::span<Candidate> all = buffer_.first(size_);
  const auto end = std::remove_if(all.begin(), all.end(), [this](const Candidate& candidate) {
    return candidate.upper < gate_;
  });
  size_ = static_cast<std::size_t>(end - all.begin());
}

void Candidates::Tighten(const Guess& guess) {
  const std::size_t rank = std::min(guess.rank, k_);
  if (size_ >= rank) {
    const std::span<Candidate> all = buffer_.first(size_);
    const Iterator guide = all.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    // Ordered by the score that each is guessed to reach, not by lower bounds: bounds differ
    // between blocks, and those of rows already scored are zero.
    const auto guessed = [share = 1 - guess.caution](const Candidate& candidate) {
      return candidate.lower + (candidate.upper - candidate.lower) / 2 * share;
    };
    std::nth_element(all.begin(), guide, all.end(), [&](const Candidate& a, const Candidate& b) {
      return guessed(a) > guessed(b);
    });
    RaiseGate(guessed(*guide));
  }
  DropBelowGate();
  due_ = size_ + std::max(kDueMin, k_ / 2);
}

// Where bounds do not separate rows, their canonical scores do.
void Candidates::MakeSpace(const Guess& guess, const Rescorer& rescorer) {
  Tighten(guess);
  if (size_ <= buffer_.size() / 4 * 3) return;
  size_ = SelectBest(buffer_.first(size_), k_, rescorer);
  if (size_ == k_) RaiseGate(buffer_[k_ - 1].lower);
}

std::size_t SelectBest(std::span<Candidate> candidates, std::size_t k, const Rescorer& rescorer) {
  if (candidates.size() > k) {
    // The k greatest lower bounds first: k rows reach the least of their scores.
    const Iterator kth = candidates.begin() + static_cast<std::ptrdiff_t>(k);
    std::nth_element(candidates.begin(), kth - 1, candidates.end(), ByLower);
    ScoreAll(candidates.first(k), rescorer);
    const float reached =
        std::min_element(candidates.begin(), kth, [](const Candidate& a, const Candidate& b) {
          return a.lower < b.lower;
        })->lower;
    const auto end = std::remove_if(kth, candidates.end(), [reached](const Candidate& candidate) {
      return candidate.upper < reached;
    });
    candidates = candidates.first(static_cast<std::size_t>(end - candidates.begin()));
  }
  ScoreAll(candidates, rescorer);
  const std::size_t kept = std::min(k, candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(kept),
                    candidates.end(), [&rescorer](const Candidate& a, const Candidate& b) {
                      return RankKey(a.lower, rescorer.RowOf(a.index)) >
                             RankKey(b.lower, rescorer.RowOf(b.index));
                    });
  return kept;
}

}  // namespace simile::backend::cpu
