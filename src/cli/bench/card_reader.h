#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
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
CardReader FirstReaderOf(CardReader first, CardReader second);

}  // namespace simile::cli::bench
