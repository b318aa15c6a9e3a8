#include "backend/cpu/candidates.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <functional>
#include <limits>

namespace simile::backend::cpu {
namespace {

// A buffer holds k and this many more candidates, and at least this many times k. So bounds alone
// make space, without canonical scores. A thread that sees all rows has up to four times k
// candidates when bounds separate least (rescoring_bench, isotropic rows); each of several threads
// has fewer. Larger buffers mean fewer queries a pass.
constexpr std::size_t kSlackAlone = 512;
constexpr std::size_t kTimesKAlone = 5;
constexpr std::size_t kSlackOfSeveral = 256;
constexpr std::size_t kTimesKOfSeveral = 2;
constexpr std::size_t kDueMin = 32;

// A candidate is scored first when its upper bound reaches the k-th greatest cheap score minus this
// share of the score's bound. The share is three standard deviations of a cheap score's error at
// 384 dimensions (GuessCaution in int8_pass.cpp says why errors cancel). Candidates that the guess
// leaves out are scored afterwards.
constexpr float kFirstCaution = 0.1F;

// From this many keys on, a radix sort is faster than a sort that compares (estimated).
constexpr std::size_t kRadixSortMin = 256;

// A few candidates that are scored together.
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

// Maps floats to integers in the same order: inverts all bits except the sign of negative floats.
// Signed, unlike RankKey's, because SSE and AVX2 compare only signed integers.
std::int32_t Ordered(float value) {
  const auto bits = std::bit_cast<std::int32_t>(value);
  return bits ^ (bits >> 31 & 0x7fff'ffff);
}
float Unordered(std::int32_t ordered) {
  return std::bit_cast<float>(ordered ^ (ordered >> 31 & 0x7fff'ffff));
}

// The rank-th greatest score, or a lower score that at most a 32nd more of the scores exceed.
// Bisects: counts the scores below the middle of a range, which has no branch to mispredict and
// uses wide registers. docs/design/cpu-engine.md compares it with other methods.
//   scores  [count]  and space for kScoresPerStep more, which is written to
// REQUIRES: 1 <= rank <= count
std::int32_t NearlyGreatest(std::int32_t* scores, std::size_t count, std::size_t rank) {
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

// The score that guess.rank candidates are guessed to reach; up to a 32nd more may reach it.
// REQUIRES: 1 <= guess.rank <= candidates.size()
float GuessedScore(std::span<const Candidate> candidates, const Guess& guess,
                   CandidateScratch& scratch) {
  const float above_lower = (1 - guess.caution) / 2;
  std::int32_t* scores = scratch.scores();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    scores[i] = Ordered(candidate.lower + (candidate.upper - candidate.lower) * above_lower);
  }
  return Unordered(NearlyGreatest(scores, candidates.size(), guess.rank));
}

// Sorts, greatest first, by three digits of eleven bits of the keys' scores. Keys with equal scores
// are sorted by comparing.
//   to  [keys.size()] written: the sorted keys. REQUIRES: does not overlap keys
void RadixSort(std::span<RankKey> keys, RankKey* to) {
  constexpr unsigned kBits = 11;
  const auto by_digit = [](std::span<const RankKey> from, RankKey* into, unsigned digit) {
    // Inverted, so that the greatest key comes first.
    SortByDigit<kBits>(from, into, [shift = 32 + digit * kBits](RankKey key) {
      return static_cast<std::size_t>(~key.packed() >> shift) & ((1U << kBits) - 1);
    });
  };
  by_digit(keys, to, 0);
  by_digit({to, keys.size()}, keys.data(), 1);
  by_digit(keys, to, 2);
  const std::span<RankKey> sorted(to, keys.size());
  for (std::size_t first = 0, end = 0; first < sorted.size(); first = end) {
    end = first + 1;
    while (end < sorted.size() && sorted[end].score() == sorted[first].score()) ++end;
    if (end - first > 1) std::ranges::sort(sorted.subspan(first, end - first), std::greater<>());
  }
}

// Keeps the candidates for which keep returns true, in their order; returns their number. Copies
// every candidate without a branch, because a branch could not be predicted.
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

std::size_t Candidates::CapacityFor(std::size_t k, std::size_t rows_max, std::size_t threads) {
  const std::size_t kept = std::min(k, rows_max);
  const std::size_t wanted = threads == 1
                                 ? std::max(kTimesKAlone * kept, kept + kSlackAlone)
                                 : std::max(kTimesKOfSeveral * kept, kept + kSlackOfSeveral);
  return std::min(rows_max, wanted);
}

Candidates::Candidates(std::span<Candidate> buffer, std::size_t k, float gate)
    : buffer_(buffer), due_(std::max(kDueMin, k / 2)), k_(k), gate_(gate) {}

void Candidates::DropBelowGate() {
  size_ = KeepWhere(buffer_.first(size_),
                    [gate = gate_](const Candidate& candidate) { return candidate.upper >= gate; });
}

void Candidates::Tighten(const Guess& guess, CandidateScratch& scratch) {
  const Guess capped{std::min(guess.rank, k_), guess.caution};
  // Uses the score that each candidate is guessed to reach, not lower bounds: bounds differ between
  // blocks and are zero for rows already scored.
  if (size_ >= capped.rank) RaiseGate(GuessedScore(buffer_.first(size_), capped, scratch));
  DropBelowGate();
  due_ = size_ + std::max(kDueMin, k_ / 2);
}

// When bounds do not separate rows, canonical scores do; when scores are equal, rank keys do.
void Candidates::MakeSpace(const Guess& guess, const Rescorer& rescorer,
                           CandidateScratch& scratch) {
  Tighten(guess, scratch);
  if (size_ <= buffer_.size() / 8 * 7) return;
  size_ = ScoreBest(buffer_.first(size_), k_, rescorer, scratch);
  assert(size_ >= k_);
  const std::span<Candidate> scored = buffer_.first(size_);
  const auto kth = scored.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
  std::ranges::nth_element(scored, kth, std::greater<>(), [&](const Candidate& candidate) {
    return RankKey(candidate.lower, rescorer.ToRow(candidate.index));
  });
  size_ = k_;
  RaiseGate(kth->lower);
  due_ = size_ + std::max(kDueMin, k_ / 2);
}

std::size_t MoveExpectedFirst(std::span<Candidate> candidates, std::size_t k,
                              CandidateScratch& scratch) {
  if (candidates.size() <= k) return candidates.size();
  const float kth = GuessedScore(candidates, {k, kFirstCaution}, scratch);
  const auto rest =
      std::partition(candidates.begin(), candidates.end(),
                     [kth](const Candidate& candidate) { return candidate.upper >= kth; });
  const auto first = static_cast<std::size_t>(rest - candidates.begin());
  assert(first >= k);  // no guessed score exceeds its candidate's upper bound
  return first;
}

std::size_t DropBeaten(std::span<Candidate> candidates, std::size_t first, std::size_t k,
                       CandidateScratch& scratch) {
  if (first < k) return candidates.size();
  const float reached = GuessedScore(candidates.first(first), {k, 1}, scratch);
  return KeepWhere(candidates,
                   [reached](const Candidate& candidate) { return candidate.upper >= reached; });
}

std::span<const RankKey> RankBest(std::span<const Candidate> candidates, std::size_t k,
                                  Row first_row, CandidateScratch& scratch) {
  const std::span<RankKey> keys(scratch.keys(), candidates.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    keys[i] = {candidates[i].lower, first_row + static_cast<Row>(candidates[i].index)};
  const std::size_t kept = std::min(k, keys.size());
  if (keys.size() >= kRadixSortMin) {
    RadixSort(keys, scratch.more_keys());
    return {scratch.more_keys(), kept};
  }
  std::ranges::partial_sort(keys, keys.begin() + static_cast<std::ptrdiff_t>(kept),
                            std::greater<>());
  return keys.first(kept);
}

std::size_t ScoreBest(std::span<Candidate> candidates, std::size_t k, const Rescorer& rescorer,
                      CandidateScratch& scratch) {
  const std::size_t first = MoveExpectedFirst(candidates, k, scratch);
  ScoreAll(candidates.first(first), rescorer);
  const std::size_t kept = DropBeaten(candidates, first, k, scratch);
  ScoreAll(candidates.first(kept), rescorer);
  return kept;
}

std::span<const RankKey> FindBest(std::span<Candidate> candidates, std::size_t k,
                                  const Rescorer& rescorer, CandidateScratch& scratch) {
  const std::size_t kept = ScoreBest(candidates, k, rescorer, scratch);
  return RankBest(candidates.first(kept), k, rescorer.first_row(), scratch);
}

}  // namespace simile::backend::cpu
