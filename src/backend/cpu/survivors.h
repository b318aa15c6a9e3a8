#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/rescorer.h"
#include "simile/rank_key.h"

namespace simile::backend::cpu {

// A row that the first stage could not drop: its canonical score lies between the two, and is known
// when they are one.
struct Survivor {
  std::uint32_t index = 0;  // of the segment's rows
  float lower = 0;
  float upper = 0;
};

// How a gate is set: at the rank-th best survivor's cheap score less this share of its bound.
// Proven: the k-th best and its whole bound, since k rows reach that for certain.
struct Guess {
  std::size_t rank = 0;  // certificate/speculative_rank.h
  float caution = 1;     // 0 .. 1
};

// The rows that may still be among a query's k best, of those that one thread has seen. Each may be
// dropped once its upper bound lies strictly below a threshold that k rows are known to reach; the
// gate is that threshold, or a guess at it that the end of the search verifies. Borrows its buffer;
// used by one thread at a time.
class Survivors {
 public:
  // Survivors of buffer needed to keep k of at most rows_max rows.
  static std::size_t RoomFor(std::size_t k, std::size_t rows_max);

  Survivors() = default;
  // REQUIRES: k >= 1; room.size() >= RoomFor(k, rows that will be offered)
  Survivors(std::span<Survivor> room, std::size_t k, float gate);

  // Rows whose upper bound lies below need not be offered.
  float gate() const { return gate_; }
  // Takes over the gate of another thread that has seen other rows.
  void RaiseGate(float gate) {
    if (gate > gate_) gate_ = gate;
  }

  void Offer(const Survivor& survivor, const Guess& guess, const Rescorer& rescorer) {
    if (survivor.upper < gate_) return;
    if (size_ == room_.size()) MakeRoom(guess, rescorer);
    if (survivor.upper < gate_) return;
    room_[size_++] = survivor;
  }
  // Whether enough has come in since the last time that tightening pays.
  bool due() const { return size_ >= due_; }
  // Raises the gate to what the survivors show and drops those below.
  void Tighten(const Guess& guess);

  std::span<const Survivor> all() const { return room_.first(size_); }

 private:
  void MakeRoom(const Guess& guess, const Rescorer& rescorer);
  void DropBelowGate();

  std::span<Survivor> room_;
  std::size_t size_ = 0;
  std::size_t due_ = 0;
  std::size_t k_ = 0;
  float gate_ = 0;
};

// Gives every survivor its canonical score, drops all but the k best, best first, and returns how
// many are left. What cannot be among the k best is dropped without a score.
std::size_t Settle(std::span<Survivor> survivors, std::size_t k, const Rescorer& rescorer);

}  // namespace simile::backend::cpu
