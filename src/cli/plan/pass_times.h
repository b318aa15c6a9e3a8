#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/plan/capacity.h"

namespace simile::cli {

// How long answers take, from what was measured on cards: docs/cards.md has the arithmetic.

// What a figure of a plan is.
enum class Basis : std::uint8_t {
  kMeasured,  // on this card, of as many rows and dimensions
  kScaled,    // from another card or other rows
  kFloor,     // nothing of its kind was measured: it takes at least this long
};
std::string_view BasisText(Basis basis);

// A batch as a card answered it. Bits were compared with the plain scan's in the same run.
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
  std::string_view card;  // that was measured; empty for a floor
};

// A batch on a card.
struct DeviceBatch {
  const PlannedCollection& collection;
  std::uint32_t batch;
  std::uint32_t k;
  const backend::WorkspaceSize& workspace;
  const DeviceSpeed& speed;
  const backend::ResidentSize& resident;
  std::string_view card;  // as FindCardFacts names it; empty: another one
};

// On the device alone: a line through the times of the two measured collections over their floors
// on the measured card, read at the floor on this one. nullopt where no such pass is among them.
std::optional<EngineTime> PassTimeOnDevice(const DeviceBatch& batch,
                                           std::span<const MeasuredPass> measured);

// From the call of the engine to its return: the same and the host's share. The floor where no such
// pass was measured.
EngineTime EngineTimeOnDevice(const DeviceBatch& batch);

// Of a server.
struct ServedTime {
  double seconds = 0;  // of a call; 0: many calls at the same time
  double queries_per_s = 0;
  Basis basis = Basis::kFloor;
};
// Calls of `queries` queries, one at a time.
//   on_device  null: on the host
ServedTime ServedCalls(const DeviceBatch* on_device, std::uint32_t queries,
                       const EngineTime& engine);
// Calls of one query, kCallsAtOnce of them at any time.
//   engine  of a batch of kCallsAtOnce
inline constexpr std::uint32_t kCallsAtOnce = 64;
ServedTime ServedAtOnce(const DeviceBatch* on_device, const EngineTime& engine);

// What answers were served with when the server's share was measured.
inline constexpr std::uint32_t kServedHits = 10;

}  // namespace simile::cli
