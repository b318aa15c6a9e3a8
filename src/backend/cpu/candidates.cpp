#include "backend/cpu/candidates.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

namespace simile::backend::cpu {
namespace {

// Space beyond k: each selection then drops enough candidates to pay for itself.
constexpr std::size_t kSlackMin = 256;
constexpr std::size_t kDueMin = 32;

// The share of their bounds by which the candidates that are scored first are allowed to miss the
// k-th best cheap score.
constexpr float kFirstCaution = 0.1F;

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
      candidates_[i]->SetScore(scores[i]);
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
        if (!candidates[i].known()) rescorer.Prefetch(candidates[i].index);
      },
      [&](std::size_t i) {
        if (!candidates[i].known()) batch.Add(candidates[i]);
      });
  batch.Score();
}

// Floats as integers of the same order: inverts all bits but the sign of negative ones.
std::int32_t Ordered(float value) {
  const auto bits = std::bit_cast<std::int32_t>(value);
  return bits ^ (bits >> 31 & 0x7fff'ffff);
}
float Unordered(std::int32_t ordered) {
  return std::bit_cast<float>(ordered ^ (ordered >> 31 & 0x7fff'ffff));
}

// The least of the greatest scores: `rank` of them, or up to a 32nd more. Halves the range of the
// scores and counts how many lie below its middle, which has no branch to mispredict and is done in
// wide registers: std::nth_element takes several times as long.
//   scores  [count]  as Ordered has them; and space for kScoresPerStep more, which is written to
// REQUIRES: 1 <= rank <= count
std::int32_t LeastOfGreatest(std::int32_t* scores, std::size_t count, std::size_t rank) {
  constexpr std::size_t kStep = CandidateScratch::kScoresPerStep;
  constexpr auto kLowest = std::numeric_limits<std::int32_t>::min();
  constexpr auto kHighest = std::numeric_limits<std::int32_t>::max();
  std::int32_t low = kHighest;  // at least `rank` scores reach it
  std::int32_t high = kLowest;
  for (std::size_t i = 0; i < count; ++i) {
    low = std::min(low, scores[i]);
    high = std::max(high, scores[i]);
  }
  const std::size_t padded = (count + kStep - 1) / kStep * kStep;
  std::fill(scores + count, scores + padded, kLowest);
  const std::size_t few_more = rank + rank / 32;
  std::size_t reaching = count;
  while (reaching > few_more && low < high) {
    // Rounded up, so that each step makes the range smaller.
    const auto middle = static_cast<std::int32_t>(
        (static_cast<std::int64_t>(low) + static_cast<std::int64_t>(high) + 1) >> 1);
    std::int32_t below = 0;
    for (std::size_t i = 0; i < padded; ++i) below += scores[i] < middle ? 1 : 0;
    const std::size_t reach_middle = padded - static_cast<std::size_t>(below);
    if (reach_middle < rank) {
      high = middle - 1;
    } else {
      low = middle;
      reaching = reach_middle;
    }
  }
  std::int32_t least = kHighest;
  for (std::size_t i = 0; i < count; ++i)
    least = std::min(least, scores[i] < low ? kHighest : scores[i]);
  return least;
}

// The score that a candidate is guessed to reach.
struct GuessedScore {
  float share;  // of half of its range, above its lower end

  float operator()(const Candidate& candidate) const {
    return candidate.lower + (candidate.upper - candidate.lower) / 2 * share;
  }
};

// Of what score_of says of the candidates: a score that `rank` of them reach, or a few more.
template <class ScoreOf>
float RankedScoreOf(std::span<const Candidate> candidates, std::size_t rank, ScoreOf score_of,
                    const CandidateScratch& scratch) {
  std::int32_t* scores = scratch.scores();
  for (std::size_t i = 0; i < candidates.size(); ++i) scores[i] = Ordered(score_of(candidates[i]));
  return Unordered(LeastOfGreatest(scores, candidates.size(), rank));
}

// From this many keys on they are sorted by digits.
constexpr std::size_t kDistributedMin = 256;

// Sorts, greatest first, by distributing the keys three times by eleven bits of their scores; those
// of one score are compared. A tenth of the time of std::sort from a thousand keys on.
//   spare  [keys.size()]
// Returns where they are then: in keys or in spare.
std::span<const RankKey> SortByDigits(std::span<RankKey> keys, RankKey* spare) {
  constexpr unsigned kBits = 11;
  constexpr std::uint32_t kMask = (1U << kBits) - 1;
  constexpr std::size_t kDigits = 3;
  // Inverted, so that the greatest key comes first.
  const auto digit_of = [](RankKey key, std::size_t digit) {
    return static_cast<std::uint32_t>(~key.packed() >> (32 + digit * kBits)) & kMask;
  };
  std::array<std::array<std::uint32_t, kMask + 1>, kDigits> places{};
  for (const RankKey key : keys) {
    for (std::size_t digit = 0; digit < kDigits; ++digit) ++places[digit][digit_of(key, digit)];
  }
  std::span<RankKey> from = keys;
  std::span<RankKey> to(spare, keys.size());
  for (std::size_t digit = 0; digit < kDigits; ++digit) {
    std::uint32_t sum = 0;
    for (std::uint32_t& place : places[digit]) sum += std::exchange(place, sum);
    for (const RankKey key : from) to[places[digit][digit_of(key, digit)]++] = key;
    std::swap(from, to);
  }
  for (std::size_t first = 0, end = 0; first < from.size(); first = end) {
    end = first + 1;
    while (end < from.size() && from[end].score() == from[first].score()) ++end;
    if (end - first > 1) std::ranges::sort(from.subspan(first, end - first), std::greater<>());
  }
  return from;
}

float LowerOf(const Candidate& candidate) { return candidate.lower; }

// Keeps those for which keep says so, in their order; returns how many. Which ones these are cannot
// be predicted: each is copied, without a branch.
template <class Keep>
std::size_t KeepWhere(std::span<Candidate> candidates, Keep keep) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate candidate = candidates[i];
    candidates[kept] = candidate;
    kept += keep(candidate) ? 1 : 0;
  }
  return kept;
}

}  // namespace

std::size_t Candidates::CapacityFor(std::size_t k, std::size_t rows_max) {
  const std::size_t kept = std::min(k, rows_max);
  return std::min(rows_max, kept + std::max(3 * kept, kSlackMin));
}

Candidates::Candidates(std::span<Candidate> buffer, std::size_t k, float gate)
    : buffer_(buffer), due_(std::max(kDueMin, k / 2)), k_(k), gate_(gate) {}

void Candidates::DropBelowGate() {
  size_ = KeepWhere(buffer_.first(size_),
                    [gate = gate_](const Candidate& candidate) { return candidate.upper >= gate; });
}

void Candidates::Tighten(const Guess& guess, const CandidateScratch& scratch) {
  const std::size_t rank = std::min(guess.rank, k_);
  if (size_ >= rank) {
    // By the score that each is guessed to reach, not by lower bounds: bounds differ between
    // blocks, and those of rows already scored are zero.
    RaiseGate(RankedScoreOf(buffer_.first(size_), rank, GuessedScore{1 - guess.caution}, scratch));
  }
  DropBelowGate();
  due_ = size_ + std::max(kDueMin, k_ / 2);
}

// Where bounds do not separate rows, their canonical scores do.
void Candidates::MakeSpace(const Guess& guess, const Rescorer& rescorer,
                           const CandidateScratch& scratch) {
  Tighten(guess, scratch);
  if (size_ <= buffer_.size() / 8 * 7) return;
  const std::size_t first = MoveFirst(buffer_.first(size_), k_, scratch);
  ScoreAll(buffer_.first(first), rescorer);
  size_ = DropBeaten(buffer_.first(size_), first, k_, scratch);
  const std::span<Candidate> left = buffer_.first(size_);
  ScoreAll(left, rescorer);
  if (size_ < k_) return;
  // By rank key, since nothing else separates rows of the same score.
  const auto kth = left.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
  std::ranges::nth_element(left, kth, std::greater<>(), [&](const Candidate& candidate) {
    return RankKey(candidate.lower, rescorer.RowOf(candidate.index));
  });
  size_ = k_;
  RaiseGate(kth->lower);
}

std::size_t MoveFirst(std::span<Candidate> candidates, std::size_t k,
                      const CandidateScratch& scratch) {
  if (candidates.size() <= k) return candidates.size();
  const float kth = RankedScoreOf(candidates, k, GuessedScore{1 - kFirstCaution}, scratch);
  const auto rest =
      std::partition(candidates.begin(), candidates.end(),
                     [kth](const Candidate& candidate) { return candidate.upper >= kth; });
  return static_cast<std::size_t>(rest - candidates.begin());
}

std::size_t DropBeaten(std::span<Candidate> candidates, std::size_t first, std::size_t k,
                       const CandidateScratch& scratch) {
  if (first < k) return candidates.size();
  const float reached = RankedScoreOf(candidates.first(first), k, LowerOf, scratch);
  return KeepWhere(candidates,
                   [reached](const Candidate& candidate) { return candidate.upper >= reached; });
}

std::span<const RankKey> RankBest(std::span<const Candidate> candidates, std::size_t k,
                                  Row first_row, const CandidateScratch& scratch) {
  RankKey* const keys = scratch.keys();
  for (std::size_t i = 0; i < candidates.size(); ++i)
    keys[i] = {candidates[i].lower, first_row + static_cast<Row>(candidates[i].index)};
  const std::span<RankKey> all(keys, candidates.size());
  const std::size_t kept = std::min(k, all.size());
  if (all.size() >= kDistributedMin) return SortByDigits(all, scratch.more_keys()).first(kept);
  std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(kept), std::greater<>());
  return all.first(kept);
}

std::span<const RankKey> FindBest(std::span<Candidate> candidates, std::size_t k,
                                  const Rescorer& rescorer, const CandidateScratch& scratch) {
  const std::size_t first = MoveFirst(candidates, k, scratch);
  ScoreAll(candidates.first(first), rescorer);
  const std::span<Candidate> left = candidates.first(DropBeaten(candidates, first, k, scratch));
  ScoreAll(left, rescorer);
  return RankBest(left, k, rescorer.first_row(), scratch);
}

}  // namespace simile::backend::cpu
