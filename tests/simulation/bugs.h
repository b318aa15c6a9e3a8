#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace simile::simulation {

// Bugs that planted_bugs.py writes into the copied sources.
enum class Bug : std::uint8_t {
  kNone,
  kNotifiesBeforeAdding,
  kForgetsEarlyCancel,
  kKeepsOldExpiry,
  kGivesBytesBackTwice,
  kTwoLead,
  kLosesWakeUp,
  kLeavesLeadEarly,
  kSharesAcrossSnapshots,
  kKeepsSearchesOfRemoved,
  kChargesNoPlainWork,
  kSavesIdleTimeUp,
  kKeepsGivenUpPass,
  kMixesPasses,
  kChargesLastSlices,
  kDropsStartedPass,
  kPausesPassOfDevice,
  kReadsSnapshotTwice,
  kClaimsInTwoSteps,
  kNotifiesOldState,
  kAwaitsOnlyTheList,
  kDropsLeaseOnSwap,
  kReadsBudgetUnlocked,
  kKeepsReservation,
  kReservesTwice,
  kReleasesBeforeCounting,
  kPinsBeforeClaiming,
  kKeepsClaim,
  kStopsBeforeSaying,
  kAdmitsInTwoSteps,
};

// The one that is planted. The copied sources read it at every edit.
inline Bug planted_bug = Bug::kNone;
inline bool Planted(Bug bug) { return planted_bug == bug; }

struct BugInfo {
  Bug bug = Bug::kNone;
  std::string_view name;
  std::string_view part;      // of the engine
  std::string_view scenario;  // that finds it (scenarios.h)
  std::string_view what;      // is wrong
};
std::span<const BugInfo> Bugs();

}  // namespace simile::simulation
