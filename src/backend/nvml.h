#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

namespace simile::backend {

// NVIDIA's management library (NVML), which reads a card's state without using it. It comes with
// the driver, is loaded on demand, and may be missing or old. A value that the library or the card
// does not report is absent, never 0. Codes, structs and functions are those of NVIDIA's API
// reference.

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

// NVML's error codes (nvmlReturn_t) that mean something to an operator.
inline constexpr int kNvmlNoPermission = 4;
inline constexpr int kNvmlDriverNotLoaded = 9;
inline constexpr int kNvmlGpuIsLost = 15;
inline constexpr int kNvmlResetRequired = 16;
inline constexpr int kNvmlVersionMismatch = 18;
inline constexpr int kNvmlUnknown = 999;

// Returns NVML's code of an error that a call below returned; nullopt if it came from the loader.
std::optional<int> ParseNvmlCode(const absl::Status& status);

// Why a card runs slower than it could.
struct ThrottleReason {
  std::uint64_t bit;  // in GpuReading::throttle_reasons
  const char* name;   // "hw_thermal_slowdown", for a label
  bool under_load;    // a card that works hard normally has it
};
// All reasons that matter to an operator; an idle card and clocks set by a user do not.
const std::vector<ThrottleReason>& ThrottleReasons();

// The state of one card. An optional is empty when this library or this card does not report the
// value.
struct GpuReading {
  std::string name;                                // "NVIDIA H200"; empty: cannot say
  std::string uuid;                                // "GPU-8f0d1c6a-..."; empty: cannot say
  std::string bus_id;                              // "00000000:3B:00.0"; empty: cannot say
  std::optional<std::uint64_t> memory_used_bytes;  // by all processes and the driver
  std::optional<std::uint64_t> memory_total_bytes;
  std::optional<double> utilization_ratio;  // share of the last sample in which a kernel ran, 0..1
  std::optional<unsigned> temperature_celsius;
  std::optional<double> power_watts;
  std::optional<std::uint64_t> throttle_reasons;        // bits of ThrottleReasons() and others
  std::optional<std::uint64_t> ecc_uncorrected_errors;  // since the driver was loaded
  std::optional<unsigned> compute_mode;  // 0 default, 2 prohibited, 3 exclusive process
};

class NvmlFunctions;

// Receives the Xid errors of one card: the driver's numbers for faults of the card. Reports Xids
// from the object's creation on. Used by one thread at a time.
class XidEvents {
 public:
  ~XidEvents();
  XidEvents(const XidEvents&) = delete;
  XidEvents& operator=(const XidEvents&) = delete;

  // Waits for the next Xid; nullopt when none came within the timeout, which may be 0.
  // Errors: the card is lost, or the library fails; ParseNvmlCode says which.
  absl::StatusOr<std::optional<std::uint64_t>> Next(std::chrono::milliseconds timeout);

 private:
  friend class Nvml;
  XidEvents(std::shared_ptr<const NvmlFunctions> functions, void* events);

  const std::shared_ptr<const NvmlFunctions> functions_;
  void* const events_;
};

// The opened library. Safe to use from any thread. Never unloaded, because drivers do not survive
// it. A call may block as long as the driver does: a hung card can hang it.
class Nvml {
 public:
  // Loads and initialises the library, by its name or path as for dlopen.
  // Errors: kNotFound when it is not on this machine; kFailedPrecondition when it cannot be loaded
  //         or initialised, with NVML's own words and code.
  static absl::StatusOr<std::unique_ptr<Nvml>> Open(const std::string& library = kNvmlLibrary);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // "570.133.20": of the kernel module; empty if the library cannot say.
  std::string DriverVersion() const;

  // The number of cards. Cards are numbered from 0 by their place on the bus, often in another
  // order than `gpu.device`. The card that a server uses is IndexAt(Chosen::gpu_bus_id)
  // (registry.h).
  absl::StatusOr<unsigned> CountDevices() const;

  // Returns the number of the card at this place of the bus, in any of its spellings
  // ("0000:3b:00.0", "00000000:3B:00.0"). Errors: NVML's, when there is none.
  absl::StatusOr<unsigned> IndexAt(const std::string& bus_id) const;

  // Errors: NVML's, when the card is lost, needs a reset or is out of reach.
  absl::StatusOr<GpuReading> Read(unsigned index) const;

  // The processes that compute on a card, except processes of other containers, which are not
  // visible.
  absl::StatusOr<std::vector<unsigned>> ProcessesOn(unsigned index) const;

  // Errors: NVML's, when the card or the library does not report them.
  absl::StatusOr<std::unique_ptr<XidEvents>> WatchXids(unsigned index) const;

 private:
  explicit Nvml(std::shared_ptr<const NvmlFunctions> functions);
  absl::StatusOr<void*> FindHandle(unsigned index) const;

  const std::shared_ptr<const NvmlFunctions> functions_;
};

// Returns the version of the library itself without initialising it, as the driver numbers it
// ("570.133.20"); empty if it cannot say. For errors of Open: a library whose driver has another
// version still answers this.
std::string NvmlLibraryVersion(const std::string& library = kNvmlLibrary);

}  // namespace simile::backend
