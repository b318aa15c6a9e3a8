#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace simile::conformance {

// Which part of a long family of numbered cases this run covers: 2 of every 20 cases in every run,
// and 3 of the other 18 by TEST_ROTATION, an unsigned number (0 when it is not set). Six
// rotations in a row cover every case; TEST_ROTATION=all covers them in one run.
class Rotation {
 public:
  static constexpr std::uint64_t kSlots = 5;  // of 20 cases that a run covers
  static constexpr std::uint64_t kRotations = 6;

  // As TEST_ROTATION has it. What is neither a number nor "all" covers everything, so that a
  // mistyped value loses no case.
  explicit Rotation(const char* text) {
    if (text == nullptr) return;
    char* end = nullptr;
    number_ = std::strtoull(text, &end, 10);
    all_ = end == text || *end != '\0';
    if (all_) number_ = 0;
  }
  static Rotation FromEnvironment() { return Rotation(std::getenv("TEST_ROTATION")); }

  bool all() const { return all_; }
  std::uint64_t number() const { return number_; }  // 0 with all()

  bool Covers(std::uint64_t number) const {
    const std::uint64_t place = number % kCycle;
    return all_ || place < kFixed || (place - kFixed) / kRotating == number_ % kRotations;
  }
  // Gives every case one of kSlots such that a run which does not cover everything covers one case
  // of each slot in every 20.
  static std::uint64_t SlotOf(std::uint64_t number) {
    const std::uint64_t place = number % kCycle;
    return place < kFixed ? place : kFixed + (place - kFixed) % kRotating;
  }
  // Which of up to four variants (cards) the case is for: number % 4 would leave a variant out of
  // some runs, this covers all four in every run. Take it modulo their number.
  static std::uint64_t VariantOf(std::uint64_t number) {
    const std::uint64_t slot = SlotOf(number);
    return slot < 4 ? slot : number;
  }
  std::string text() const { return all_ ? "all" : std::to_string(number_ % kRotations); }

 private:
  static constexpr std::uint64_t kFixed = 2;
  static constexpr std::uint64_t kRotating = 3;
  static constexpr std::uint64_t kCycle = kFixed + kRotating * kRotations;
  static_assert(kCycle == 20 && kFixed + kRotating == kSlots);

  std::uint64_t number_ = 0;
  bool all_ = false;
};

}  // namespace simile::conformance
