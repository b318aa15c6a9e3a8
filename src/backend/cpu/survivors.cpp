#include "backend/cpu/survivors.h"

#include <algorithm>

namespace simile::backend::cpu {
namespace {

// Room beyond k, so that what is dropped at once pays for the search of what to drop.
constexpr std::size_t kSlackMin = 256;
constexpr std::size_t kDueMin = 32;

using Iterator = std::span<Survivor>::iterator;

bool ByLower(const Survivor& a, const Survivor& b) { return a.lower > b.lower; }

bool Known(const Survivor& survivor) { return survivor.lower == survivor.upper; }

void ScoreAll(std::span<Survivor> survivors, const Rescorer& rescorer) {
  ScoreInTurn(
      survivors.size(),
      [&](std::size_t i) {
        if (!Known(survivors[i])) rescorer.Prefetch(survivors[i].index);
      },
      [&](std::size_t i) {
        Survivor& survivor = survivors[i];
        if (!Known(survivor)) survivor.lower = survivor.upper = rescorer.Score(survivor.index);
      });
}

}  // namespace

std::size_t Survivors::RoomFor(std::size_t k, std::size_t rows_max) {
  const std::size_t kept = std::min(k, rows_max);
  return std::min(rows_max, kept + std::max(kept, kSlackMin));
}

Survivors::Survivors(std::span<Survivor> room, std::size_t k, float gate)
    : room_(room), due_(std::max(kDueMin, k / 2)), k_(k), gate_(gate) {}

void Survivors::DropBelowGate() {
  const std::span<Survivor> all = room_.first(size_);
  const auto end = std::remove_if(
      all.begin(), all.end(), [this](const Survivor& survivor) { return survivor.upper < gate_; });
  size_ = static_cast<std::size_t>(end - all.begin());
}

void Survivors::Tighten(const Guess& guess) {
  const std::size_t rank = std::min(guess.rank, k_);
  if (size_ >= rank) {
    const std::span<Survivor> all = room_.first(size_);
    const Iterator guide = all.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    // By what each is believed to reach: bounds differ between blocks, and of rows already scored
    // nothing is left, so that the order of the lower bounds is another one.
    const auto believed = [trust = 1 - guess.caution](const Survivor& survivor) {
      return survivor.lower + (survivor.upper - survivor.lower) / 2 * trust;
    };
    std::nth_element(all.begin(), guide, all.end(), [&](const Survivor& a, const Survivor& b) {
      return believed(a) > believed(b);
    });
    RaiseGate(believed(*guide));
  }
  DropBelowGate();
  due_ = size_ + std::max(kDueMin, k_ / 2);
}

// Where bounds cannot tell rows apart, their scores can.
void Survivors::MakeRoom(const Guess& guess, const Rescorer& rescorer) {
  Tighten(guess);
  if (size_ <= room_.size() / 4 * 3) return;
  size_ = Settle(room_.first(size_), k_, rescorer);
  if (size_ == k_) RaiseGate(room_[k_ - 1].lower);
}

std::size_t Settle(std::span<Survivor> survivors, std::size_t k, const Rescorer& rescorer) {
  if (survivors.size() > k) {
    // The k greatest lower bounds first: the least of their scores is reached by k rows.
    const Iterator kth = survivors.begin() + static_cast<std::ptrdiff_t>(k);
    std::nth_element(survivors.begin(), kth - 1, survivors.end(), ByLower);
    ScoreAll(survivors.first(k), rescorer);
    const float reached =
        std::min_element(survivors.begin(), kth, [](const Survivor& a, const Survivor& b) {
          return a.lower < b.lower;
        })->lower;
    const auto end = std::remove_if(kth, survivors.end(), [reached](const Survivor& survivor) {
      return survivor.upper < reached;
    });
    survivors = survivors.first(static_cast<std::size_t>(end - survivors.begin()));
  }
  ScoreAll(survivors, rescorer);
  const std::size_t kept = std::min(k, survivors.size());
  std::partial_sort(survivors.begin(), survivors.begin() + static_cast<std::ptrdiff_t>(kept),
                    survivors.end(), [&rescorer](const Survivor& a, const Survivor& b) {
                      return RankKey(a.lower, rescorer.RowOf(a.index)) >
                             RankKey(b.lower, rescorer.RowOf(b.index));
                    });
  return kept;
}

}  // namespace simile::backend::cpu
