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

// One reading of a card. An empty optional: the card does not report this value.
struct CardReading {
  std::string name;  // "NVIDIA H200"; "GPU 0" if read from the server's metrics
  // Share of the driver's last sampling period in which a kernel ran, 0..1.
  std::optional<double> utilization_ratio;
  std::optional<std::uint64_t> memory_used_bytes;  // by all processes and the driver
  std::optional<std::uint64_t> memory_total_bytes;
};

// Reads the card of a server. Not thread-safe.
using CardReader = std::function<absl::StatusOr<CardReading>()>;
using ReadStats = std::function<absl::StatusOr<v1::GetStatsResponse>()>;

// Reads the card on which one of these processes computes, through the driver's management library.
// If no process is found on a card and the machine has exactly one card, reads that card. The first
// reading opens the library and may hang as long as the driver does.
//   processes  the server's processes on this machine; empty: it runs elsewhere or as another user
//   nvml       the management library, by its name or path
// Errors: kNotFound if no card is known to be the server's; the library's errors.
CardReader MakeProcessReader(std::vector<pid_t> processes, std::string nvml);

// Reads the card that the server's metrics describe. Errors: kNotFound if they describe no card;
// the call's errors, for example kPermissionDenied if this client may not read the metrics.
CardReader MakeMetricsReader(ReadStats stats);

// Tries `first`, then `second`, until one answers; from then on uses that reader alone. Errors:
// both readers' messages in one sentence.
CardReader ChooseReader(CardReader first, CardReader second);

// A card during the measured part of a run.
struct CardUse {
  std::string name = {};
  std::uint64_t readings = 0;                   // 0: the card could not be read
  std::string why_not = {};                     // why there is no reading; empty if there is one
  std::optional<double> utilization_mean = {};  // mean of the readings, 0..1
  std::optional<double> utilization_max = {};
  std::optional<std::uint64_t> memory_used_bytes_max = {};
  std::optional<std::uint64_t> memory_total_bytes = {};
};

// Reads a card while runs are measured. Reads on its own thread, because a hung card can hang the
// driver's library. Used by one thread.
class CardWatch {
 public:
  static constexpr std::chrono::milliseconds kInterval{250};

  static constexpr std::chrono::milliseconds kEndWait{500};

  //   interval  between two readings
  //   end_wait  how long End waits for the run's first reading, and the destructor for the thread
  explicit CardWatch(CardReader read, std::chrono::milliseconds interval = kInterval,
                     std::chrono::milliseconds end_wait = kEndWait);
  // Abandons the thread if it hangs in a reading.
  ~CardWatch();
  CardWatch(const CardWatch&) = delete;
  CardWatch& operator=(const CardWatch&) = delete;

  // Starts the measured part of a run.
  void Begin();
  // Ends the measured part. Waits for its first reading, at most end_wait.
  CardUse End();

 private:
  struct State;  // shared with the thread, which may outlive this object

  const std::shared_ptr<State> state_;
  const std::chrono::milliseconds end_wait_;
};

}  // namespace simile::cli::bench
