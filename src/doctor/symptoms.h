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
  kSkipped,  // the probe was not made, or its failure follows from an earlier one
};

// The finding of one probe, in words for an operator.
struct Finding {
  std::string probe;  // "driver"
  State state = State::kOk;
  std::string text;     // what the probe saw
  std::string fix;      // what to do, in lines; empty if there is nothing to do
  std::string symptom;  // the symptom's name in SymptomRows; empty if there is none
};

inline Finding OkFinding(std::string_view probe, std::string text) {
  return {std::string(probe), State::kOk, std::move(text), "", ""};
}
inline Finding SkippedFinding(std::string_view probe, std::string text) {
  return {std::string(probe), State::kSkipped, std::move(text), "", ""};
}

// The oldest nvidia-container-toolkit without the flaw CVE-2025-23266.
inline constexpr const char* kSafeToolkit = "1.17.8";

// Every known cause that keeps a GPU from answering, or will soon. Symptoms of a card itself are in
// the order of their gravity.
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

// The values for the names in braces in a symptom's text and fix.
struct Evidence {
  std::string subject = {};  // a path, a variable or a card
  std::string detail = {};   // the error in the words of its reporter
  std::string value = {};    // the value of the subject
  std::string module = {};   // version of the kernel module
  std::string library = {};  // version of the driver's libraries
  std::string needed = {};   // what is required
};

// One row of the table, which is the only place that says what a symptom means and what to do.
struct SymptomRow {
  Symptom symptom;
  const char* name;  // stable, for programs: "version_mismatch"
  State state;       // kFailed or kWarning
  const char* text;  // {subject} and the like stand for the fields of Evidence
  const char* fix;   // likewise
};
std::span<const SymptomRow> SymptomRows();

// Makes a finding: writes the evidence into the texts of the symptom's row. Pure.
Finding Diagnose(std::string_view probe, Symptom symptom, const Evidence& evidence);

// Whether one finding of a card is graver than another. A failure is graver than a warning; then
// the order of the symptoms decides. A finding without a symptom is the least grave. Pure.
bool IsGraver(const Finding& finding, const Finding& than);

// The symptom for a CUDA error code, of the driver or of the runtime, which share their codes.
Symptom SymptomOfDriverError(int code);
// The symptom for an Xid error, which is the driver's number for a fault of a card.
Symptom SymptomOfXid(std::uint64_t xid);

}  // namespace simile::doctor
