#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/plan/capacity.h"

namespace simile::cli {

// Estimates how long answers take from times measured on cards. docs/cards.md explains the
// arithmetic.

// How a figure of a plan was obtained.
enum class Basis : std::uint8_t {
  kMeasured,  // measured on this card with this many rows and dimensions
  kScaled,    // scaled from another card or from other rows
  kFloor,     // no pass of this kind was measured; the true time is at least this
};
std::string_view BasisText(Basis basis);

// The time in which a card answered a batch. The same run compared the answer's bits with the plain
// scan's.
struct MeasuredPass {
  std::string_view card;  // as FindCardFacts names it
  PassKind kind;
  std::uint32_t rows, dim, batch, k;
  double device_us;
  double host_us;  // from the call of the engine to its return; 0: not measured
};
std::span<const MeasuredPass> MeasuredPasses();

struct EngineTime {
  double seconds = 0;
  Basis basis = Basis::kFloor;
  std::string_view card;  // the card that was measured; empty for a floor
};

// A batch on a card.
struct DeviceBatch {
  const PlannedCollection& collection;
  std::uint32_t batch;
  std::uint32_t k;
  const backend::WorkspaceSize& workspace;
  const DeviceSpeed& speed;
  const backend::ResidentSize& resident;
  std::string_view card;  // as FindCardFacts names it; empty: a card that is not in the table
};

// The time on the device alone. Draws a line through the times of the two measured collections over
// their floors on the measured card, and reads it at this batch's floor on this card. nullopt if no
// pass of this kind was measured.
std::optional<EngineTime> PassTimeOnDevice(const DeviceBatch& batch,
                                           std::span<const MeasuredPass> measured);

// The time from the call of the engine to its return: the time on the device and the host's share.
// The floor if no pass of this kind was measured.
EngineTime EngineTimeOnDevice(const DeviceBatch& batch);

// The time of a server's answers.
struct ServedTime {
  double seconds = 0;  // of a call; 0 for many concurrent calls
  double queries_per_s = 0;
  Basis basis = Basis::kFloor;
};
// Calls of `queries` queries, one at a time.
//   on_device  null: the host answers
ServedTime ServedCalls(const DeviceBatch* on_device, std::uint32_t queries,
                       const EngineTime& engine);
// Calls of one query, with kCallsAtOnce in flight at any time.
//   engine  the engine's time for a batch of kCallsAtOnce queries
inline constexpr std::uint32_t kCallsAtOnce = 64;
ServedTime ServedAtOnce(const DeviceBatch* on_device, const EngineTime& engine);

// Hits per query in the measurement of the server's share.
inline constexpr std::uint32_t kServedHits = 10;

}  // namespace simile::cli
