#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/bench/card_reader.h"

namespace simile::cli::bench {

// A card during the measured part of a run.
struct CardUse {
  std::string name = {};
  std::uint64_t readings = 0;                   // 0: it could not be read
  std::string why_not = {};                     // where it could not be read
  std::optional<double> utilization_mean = {};  // of the readings, 0..1
  std::optional<double> utilization_max = {};
  std::optional<std::uint64_t> memory_used_bytes_max = {};
  std::optional<std::uint64_t> memory_total_bytes = {};
};

// Reads a card on a thread of its own while runs are measured, because a hung card can hang its
// driver's library. Used by one thread.
class CardWatch {
 public:
  static constexpr std::chrono::milliseconds kInterval{250};

  static constexpr std::chrono::milliseconds kEndWait{500};

  //   interval  between two readings
  //   end_wait  how long the end of a run waits for its first reading, and the destructor for the
  //             thread
  explicit CardWatch(CardReader read, std::chrono::milliseconds interval = kInterval,
                     std::chrono::milliseconds end_wait = kEndWait);
  // Leaves a thread that hangs in a reading behind.
  ~CardWatch();
  CardWatch(const CardWatch&) = delete;
  CardWatch& operator=(const CardWatch&) = delete;

  // A run's measured part begins.
  void Begin();
  // It has ended; waits for its first reading.
  CardUse End();

 private:
  struct State;  // shared with the thread, which may outlive this

  const std::shared_ptr<State> state_;
  const std::chrono::milliseconds end_wait_;
};

}  // namespace simile::cli::bench
