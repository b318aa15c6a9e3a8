#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "simile/v1/admin.pb.h"

namespace simile::cli::bench {

// What a card says of itself now. An optional that is empty: it cannot say.
struct CardReading {
  std::string name;                         // "NVIDIA H200"; of the server's metrics "GPU 0"
  std::optional<double> utilization_ratio;  // share of the last moments in which a kernel ran, 0..1
  std::optional<std::uint64_t> memory_used_bytes;  // by all processes and the driver
  std::optional<std::uint64_t> memory_total_bytes;
};

// Reads the card of a server; may be called once a second or more often. Not thread-safe.
using CardReader = std::function<absl::StatusOr<CardReading>()>;
using ReadStats = std::function<absl::StatusOr<v1::GetStatsResponse>()>;

// The card on which one of these processes computes, by the driver's management library; where the
// machine has one card only, and the server runs on it, that card. The library is opened by the
// first reading, which may hang as long as the driver does.
//   processes  the server's, on this machine; empty: it is elsewhere, or another user's
//   nvml       the management library, by its name or path
// Errors: kNotFound when no card is known to be the server's; those of the library.
CardReader ReaderOfProcesses(std::vector<pid_t> processes, std::string nvml);

// The card that the server's metrics describe. Errors: kNotFound when they describe none; those of
// the call, kPermissionDenied for a server that does not let clients read its metrics.
CardReader ReaderOfMetrics(ReadStats stats);

// The first of the two that answers, from then on. Errors: those of both, in one sentence.
CardReader ChooseReader(CardReader first, CardReader second);

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
