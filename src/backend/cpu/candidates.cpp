#include "backend/cpu/candidates.h"

#include <algorithm>
#include <array>
#include <limits>

namespace simile::backend::cpu {
namespace {

// Space beyond k: each selection then drops enough candidates to pay for itself.
constexpr std::size_t kSlackMin = 256;
constexpr std::size_t kDueMin = 32;

using Iterator = std::span<Candidate>::iterator;

bool ByLower(const Candidate& a, const Candidate& b) { return a.lower > b.lower; }

bool Known(const Candidate& candidate) { return candidate.lower == candidate.upper; }

// Candidates that are scored together.
class ScoringBatch {
 public:
  explicit ScoringBatch(const Rescorer& rescorer) : rescorer_(rescorer) {}

  void Add(Candidate& candidate) {
    candidates_[count_] = &candidate;
    indices_[count_] = candidate.index;
    if (++count_ == candidates_.size()) Score();
  }
  void Score() {
    std::array<float, Rescorer::kRowsScoredTogether> scores;
    rescorer_.Score(std::span(indices_).first(count_), scores.data());
    for (std::size_t i = 0; i < count_; ++i) {
      candidates_[i]->lower = candidates_[i]->upper = scores[i];
    }
    count_ = 0;
  }

 private:
  const Rescorer& rescorer_;
  std::array<Candidate*, Rescorer::kRowsScoredTogether> candidates_{};
  std::array<std::uint32_t, Rescorer::kRowsScoredTogether> indices_{};
  std::size_t count_ = 0;
};

void ScoreAll(std::span<Candidate> candidates, const Rescorer& rescorer) {
  ScoringBatch batch(rescorer);
  ScoreInTurn(
      candidates.size(),
      [&](std::size_t i) {
        if (!Known(candidates[i])) rescorer.Prefetch(candidates[i].index);
      },
      [&](std::size_t i) {
        if (!Known(candidates[i])) batch.Add(candidates[i]);
      });
  batch.Score();
}

// The score that a candidate is guessed to reach.
struct GuessedScore {
  float share;  // of half of its range, above its lower end

  float operator()(const Candidate& candidate) const {
    return candidate.lower + (candidate.upper - candidate.lower) / 2 * share;
  }
};

// Up to this many candidates are ranked by counting, which has no branch to mispredict: for 46 of
// them, as a query over 5,000 rows has on average, nth_element takes three times as long.
constexpr std::size_t kCountedMax = 256;
constexpr std::size_t kScoresPerStep = 16;  // whole registers on every processor
constexpr int kHalvingsMax = 16;

// The rank-th greatest guessed score, or a slightly lower one where scores lie so close together
// that kHalvingsMax halvings of their range do not separate them.
// REQUIRES: 1 <= rank <= candidates.size() <= kCountedMax
float GuessByHalving(std::span<const Candidate> candidates, std::size_t rank,
                     GuessedScore guessed) {
  std::array<float, kCountedMax> scores;
  float low = guessed(candidates.front());  // at least `rank` scores reach it
  float high = low;
  std::size_t count = 0;
  for (const Candidate& candidate : candidates) {
    const float score = guessed(candidate);
    scores[count++] = score;
    low = std::min(low, score);
    high = std::max(high, score);
  }
  for (; count % kScoresPerStep != 0; ++count) {
    scores[count] = -std::numeric_limits<float>::infinity();
  }
  std::size_t reaching = candidates.size();
  for (int halving = 0; halving < kHalvingsMax && reaching != rank; ++halving) {
    const float middle = low + (high - low) / 2;
    std::uint32_t reach_middle = 0;
    for (std::size_t i = 0; i < count; ++i) reach_middle += scores[i] >= middle ? 1U : 0U;
    if (reach_middle < rank) {
      high = middle;
    } else {
      low = middle;
      reaching = reach_middle;
    }
  }
  float found = high;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    found = scores[i] >= low ? std::min(found, scores[i]) : found;
  }
  return found;
}

// The same for any number of candidates; reorders them.
float GuessBySelection(std::span<Candidate> candidates, std::size_t rank, GuessedScore guessed) {
  const Iterator guide = candidates.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(
      candidates.begin(), guide, candidates.end(),
      [guessed](const Candidate& a, const Candidate& b) { return guessed(a) > guessed(b); });
  return guessed(*guide);
}

}  // namespace

std::size_t Candidates::CapacityFor(std::size_t k, std::size_t rows_max) {
  const std::size_t kept = std::min(k, rows_max);
  return std::min(rows_max, kept + std::max(kept, kSlackMin));
}

Candidates::Candidates(std::span<Candidate> buffer, std::size_t k, float gate)
    : buffer_(buffer), due_(std::max(kDueMin, k / 2)), k_(k), gate_(gate) {}

void Candidates::DropBelowGate() {
  // Which ones stay cannot be predicted: each is copied, without a branch.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    const Candidate candidate = buffer_[i];
    buffer_[kept] = candidate;
    kept += candidate.upper >= gate_ ? 1 : 0;
  }
  size_ = kept;
}

void Candidates::Tighten(const Guess& guess) {
  const std::size_t rank = std::min(guess.rank, k_);
  if (size_ >= rank) {
    const std::span<Candidate> all = buffer_.first(size_);
    // By the score that each is guessed to reach, not by lower bounds: bounds differ between
    // blocks, and those of rows already scored are zero.
    const GuessedScore guessed{1 - guess.caution};
    RaiseGate(size_ <= kCountedMax ? GuessByHalving(all, rank, guessed)
                                   : GuessBySelection(all, rank, guessed));
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
