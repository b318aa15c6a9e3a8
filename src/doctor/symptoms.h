#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace simile::doctor {

enum class State : std::uint8_t {
  kOk,
  kWarning,  // the GPU can be used; the fix prevents trouble
  kFailed,   // the GPU cannot be used, for this reason
  kSkipped,  // it follows from an earlier failure, or was not looked at
};

// What one probe found, in words for an operator.
struct Finding {
  std::string probe;  // "driver"
  State state = State::kOk;
  std::string text;     // what was seen
  std::string fix;      // what to do, in lines; empty when there is nothing to do
  std::string symptom;  // its name in the table of symptoms.h; empty when there is none
};

inline Finding OkFinding(std::string_view probe, std::string text) {
  return {std::string(probe), State::kOk, std::move(text), "", ""};
}
inline Finding SkippedFinding(std::string_view probe, std::string text) {
  return {std::string(probe), State::kSkipped, std::move(text), "", ""};
}

// The oldest nvidia-container-toolkit without the flaw CVE-2025-23266.
inline constexpr const char* kSafeToolkit = "1.17.8";

// All that is known to keep a GPU from answering, or to announce that it soon will. Those that a
// card itself can have are in the order of their gravity.
enum class Symptom : std::uint8_t {
  kNoCard,
  kNoDriver,
  kContainerWithoutGpu,
  kPodWithoutGpu,
  kHiddenFromContainer,
  kNodesMissing,
  kUvmMissing,
  kNodeDenied,
  kNodeDead,
  kAccessLost,
  kVersionMismatch,
  kModuleNotLoaded,
  kManagementMissing,
  kManagementFailed,
  kFellOffTheBus,
  kResetRequired,
  kMemoryErrors,
  kOtherXid,
  kApplicationFault,
  kThrottled,
  kNoDriverLibrary,
  kDriverLibraryBroken,
  kStubLibrary,
  kDriverTooOld,
  kForwardCompatibility,
  kHidden,
  kNoDevice,
  kNoCodeForCard,
  kPtxTooNew,
  kExclusive,
  kFabricManager,
  kMps,
  kAfterSleep,
  kDriverError,
  kPluginMissing,
  kPluginUnusable,
  kNoSuchDevice,
  kBlasUnusable,
  kDoesNotFit,
  kOpenFailed,
  kWrongAnswers,
  kHang,
  kCrash,
  kLostTooOften,
  kLostRecently,
  kRoutedByConfiguration,
  kToolkitMissing,
  kToolkitOld,
  kRuntimeNotRegistered,
  kLostByServer,
  kServerOnCpu,
  kCollectionOnCpu,
  kBatchesOnCpu,
  kCpuBroken,
};

// What was seen, for the places of a symptom's text and fix.
struct Evidence {
  std::string subject = {};  // what it is about: a path, a variable, a card
  std::string detail = {};   // the error in the words of who reported it
  std::string value = {};    // of the subject
  std::string module = {};   // version of the kernel module
  std::string library = {};  // version of the driver's libraries
  std::string needed = {};   // what would be right
};

// One row: the only place that says what a symptom means and what to do.
struct SymptomRow {
  Symptom symptom;
  const char* name;  // stable, for programs: "version_mismatch"
  State state;       // kFailed or kWarning
  const char* text;  // with places such as {subject}, named as Evidence names them
  const char* fix;   // the same
};
std::span<const SymptomRow> SymptomRows();

// Fills the places of the symptom's row. Pure.
Finding Diagnose(std::string_view probe, Symptom symptom, const Evidence& evidence);

// Whether one finding of a card is graver than another: a failure than a warning, then by the order
// of their symptoms; one without a symptom is the least. Pure.
bool IsGraver(const Finding& finding, const Finding& than);

// The symptom that an error code of CUDA stands for; its driver and its runtime share these codes.
Symptom SymptomOfDriverError(int code);
// The symptom that an Xid error stands for: the driver's number for what went wrong with a card.
Symptom SymptomOfXid(std::uint64_t xid);

}  // namespace simile::doctor
