#include "backend/nvml.h"

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include <absl/strings/cord.h>
#include <fmt/format.h>

#include "base/shared_library.h"

namespace simile::backend {
namespace {

// The types of NVIDIA's nvml.h that this file uses, with the same layouts.
using NvmlDevice = void*;
using NvmlEventSet = void*;
struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct NvmlUtilization {
  unsigned gpu;  // percent
  unsigned memory;
};
struct NvmlPciInfo {
  std::array<char, 16> bus_id_legacy;
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  std::array<char, 32> bus_id;
};
struct NvmlEventData {
  NvmlDevice device;
  unsigned long long event_type;
  unsigned long long event_data;  // the Xid
  unsigned gpu_instance_id;
  unsigned compute_instance_id;
};
struct NvmlProcess {  // of nvmlDeviceGetComputeRunningProcesses_v2 and _v3
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance_id;
  unsigned compute_instance_id;
};

constexpr int kNvmlSuccess = 0;
constexpr int kNvmlTimeout = 10;
constexpr int kNvmlFunctionNotFound = 13;
constexpr int kTemperatureOfGpu = 0;
constexpr int kUncorrectedErrors = 1;
constexpr int kVolatileErrors = 0;
constexpr unsigned long long kXidEvent = 8;

constexpr char kNvmlErrorPayload[] = "simile/nvml_error";

}  // namespace

// The functions of an opened library. A function that the library lacks is null.
class NvmlFunctions {
 public:
  explicit NvmlFunctions(void* library) {
    Find(library, "nvmlInit_v2", init);
    Find(library, "nvmlShutdown", shutdown);
    Find(library, "nvmlErrorString", error_string);
    Find(library, "nvmlSystemGetDriverVersion", driver_version);
    Find(library, "nvmlSystemGetNVMLVersion", library_version);
    Find(library, "nvmlDeviceGetCount_v2", count);
    Find(library, "nvmlDeviceGetHandleByIndex_v2", handle_by_index);
    Find(library, "nvmlDeviceGetHandleByPciBusId_v2", handle_by_bus_id);
    Find(library, "nvmlDeviceGetIndex", index);
    Find(library, "nvmlDeviceGetName", name);
    Find(library, "nvmlDeviceGetUUID", uuid);
    Find(library, "nvmlDeviceGetPciInfo_v3", pci_info);
    Find(library, "nvmlDeviceGetMemoryInfo", memory);
    Find(library, "nvmlDeviceGetUtilizationRates", utilization);
    Find(library, "nvmlDeviceGetTemperature", temperature);
    Find(library, "nvmlDeviceGetPowerUsage", power);
    // The two names mean the same; drivers before 535 know only the second.
    if (!Find(library, "nvmlDeviceGetCurrentClocksEventReasons", throttle_reasons)) {
      Find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", throttle_reasons);
    }
    Find(library, "nvmlDeviceGetTotalEccErrors", ecc_errors);
    Find(library, "nvmlDeviceGetComputeMode", compute_mode);
    if (!Find(library, "nvmlDeviceGetComputeRunningProcesses_v3", processes)) {
      Find(library, "nvmlDeviceGetComputeRunningProcesses_v2", processes);
    }
    Find(library, "nvmlEventSetCreate", event_set_create);
    Find(library, "nvmlEventSetFree", event_set_free);
    Find(library, "nvmlDeviceRegisterEvents", register_events);
    Find(library, "nvmlEventSetWait_v2", event_set_wait);
  }
  ~NvmlFunctions() {
    if (initialised && shutdown != nullptr) shutdown();
  }
  NvmlFunctions(const NvmlFunctions&) = delete;
  NvmlFunctions& operator=(const NvmlFunctions&) = delete;

  // "Driver/library version mismatch"
  std::string FindText(int code) const {
    const char* text = error_string != nullptr ? error_string(code) : nullptr;
    return text != nullptr ? text : "unknown error";
  }
  absl::Status Error(int code) const {
    absl::Status status =
        absl::FailedPreconditionError(fmt::format("NVML error {}: {}", code, FindText(code)));
    status.SetPayload(kNvmlErrorPayload, absl::Cord(std::to_string(code)));
    return status;
  }

  int (*init)();
  int (*shutdown)();
  const char* (*error_string)(int code);
  int (*driver_version)(char* text, unsigned bytes);
  int (*library_version)(char* text, unsigned bytes);
  int (*count)(unsigned* count);
  int (*handle_by_index)(unsigned index, NvmlDevice* device);
  int (*handle_by_bus_id)(const char* bus_id, NvmlDevice* device);
  int (*index)(NvmlDevice device, unsigned* index);
  int (*name)(NvmlDevice device, char* text, unsigned bytes);
  int (*uuid)(NvmlDevice device, char* text, unsigned bytes);
  int (*pci_info)(NvmlDevice device, NvmlPciInfo* info);
  int (*memory)(NvmlDevice device, NvmlMemory* memory);
  int (*utilization)(NvmlDevice device, NvmlUtilization* utilization);
  int (*temperature)(NvmlDevice device, int sensor, unsigned* celsius);
  int (*power)(NvmlDevice device, unsigned* milliwatts);
  int (*throttle_reasons)(NvmlDevice device, unsigned long long* reasons);
  int (*ecc_errors)(NvmlDevice device, int error_type, int counter_type, unsigned long long* count);
  int (*compute_mode)(NvmlDevice device, unsigned* mode);
  int (*processes)(NvmlDevice device, unsigned* count, NvmlProcess* processes);
  int (*event_set_create)(NvmlEventSet* set);
  int (*event_set_free)(NvmlEventSet set);
  int (*register_events)(NvmlDevice device, unsigned long long types, NvmlEventSet set);
  int (*event_set_wait)(NvmlEventSet set, NvmlEventData* data, unsigned timeout_ms);

  bool initialised = false;

 private:
  template <class Function>
  static bool Find(void* library, const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, symbol));
    return function != nullptr;
  }
};

namespace {

// Calls a function that an old library may lack.
template <class Function, class... Arguments>
int CallIfThere(Function function, Arguments... arguments) {
  return function == nullptr ? kNvmlFunctionNotFound : function(arguments...);
}

// The text that a function of the form (char*, unsigned) returns; empty when the function is
// missing or fails.
template <class Function, class... Arguments>
std::string TextFrom(Function function, Arguments... first) {
  constexpr unsigned kTextBytes = 96;  // the longest that nvml.h names
  std::array<char, kTextBytes> text{};
  if (CallIfThere(function, first..., text.data(), kTextBytes) != kNvmlSuccess) return {};
  text.back() = '\0';
  return text.data();
}

// Whether the code concerns the card or the driver, not only the requested value.
bool ConcernsTheCard(int code) {
  return code == kNvmlGpuIsLost || code == kNvmlResetRequired || code == kNvmlUnknown ||
         code == kNvmlNoPermission || code == kNvmlDriverNotLoaded;
}

// Reads the values of one card and remembers the first error that concerns the card.
class CardReader {
 public:
  explicit CardReader(NvmlDevice device) : device_(device) {}

  template <class Value, class Function, class... Arguments>
  std::optional<Value> Get(Function function, Arguments... arguments) {
    Value value{};
    const int code = CallIfThere(function, device_, arguments..., &value);
    if (code == kNvmlSuccess) return value;
    if (error_ == kNvmlSuccess && ConcernsTheCard(code)) error_ = code;
    return std::nullopt;
  }
  int error() const { return error_; }

 private:
  const NvmlDevice device_;
  int error_ = kNvmlSuccess;
};

// Errors: those of Nvml::Open for the loading.
absl::StatusOr<void*> LoadNvml(const std::string& library) {
  absl::StatusOr<void*> loaded = base::LoadSharedLibrary(library);
  if (loaded.ok() || absl::IsNotFound(loaded.status())) return loaded;
  return absl::FailedPreconditionError(
      fmt::format("{} cannot be loaded: {}", library, std::string(loaded.status().message())));
}

}  // namespace

std::optional<int> ParseNvmlCode(const absl::Status& status) {
  const auto payload = status.GetPayload(kNvmlErrorPayload);
  if (!payload) return std::nullopt;
  return std::stoi(std::string(*payload));
}

const std::vector<ThrottleReason>& ThrottleReasons() {
  static const std::vector<ThrottleReason> reasons = {
      {0x04, "sw_power_cap", true},
      {0x08, "hw_slowdown", false},
      {0x20, "sw_thermal_slowdown", false},
      {0x40, "hw_thermal_slowdown", false},
      {0x80, "hw_power_brake_slowdown", false},
  };
  return reasons;
}

XidEvents::XidEvents(std::shared_ptr<const NvmlFunctions> functions, void* events)
    : functions_(std::move(functions)), events_(events) {}

XidEvents::~XidEvents() { CallIfThere(functions_->event_set_free, events_); }

absl::StatusOr<std::optional<std::uint64_t>> XidEvents::Next(std::chrono::milliseconds timeout) {
  NvmlEventData data{};
  const int code =
      functions_->event_set_wait(events_, &data, static_cast<unsigned>(timeout.count()));
  if (code == kNvmlTimeout) return std::nullopt;
  if (code != kNvmlSuccess) return functions_->Error(code);
  return data.event_data;
}

absl::StatusOr<std::unique_ptr<Nvml>> Nvml::Open(const std::string& library) {
  const absl::StatusOr<void*> loaded = LoadNvml(library);
  if (!loaded.ok()) return loaded.status();
  auto functions = std::make_shared<NvmlFunctions>(*loaded);
  if (const int code = CallIfThere(functions->init); code != kNvmlSuccess) {
    return functions->Error(code);
  }
  functions->initialised = true;
  return std::unique_ptr<Nvml>(new Nvml(std::move(functions)));
}

Nvml::Nvml(std::shared_ptr<const NvmlFunctions> functions) : functions_(std::move(functions)) {}
Nvml::~Nvml() = default;

std::string Nvml::DriverVersion() const { return TextFrom(functions_->driver_version); }

absl::StatusOr<unsigned> Nvml::CountDevices() const {
  unsigned count = 0;
  if (const int code = CallIfThere(functions_->count, &count); code != kNvmlSuccess) {
    return functions_->Error(code);
  }
  return count;
}

absl::StatusOr<unsigned> Nvml::IndexAt(const std::string& bus_id) const {
  NvmlDevice device = nullptr;
  int code = CallIfThere(functions_->handle_by_bus_id, bus_id.c_str(), &device);
  unsigned index = 0;
  if (code == kNvmlSuccess) code = CallIfThere(functions_->index, device, &index);
  if (code != kNvmlSuccess) return functions_->Error(code);
  return index;
}

absl::StatusOr<void*> Nvml::FindHandle(unsigned index) const {
  NvmlDevice device = nullptr;
  const int code = CallIfThere(functions_->handle_by_index, index, &device);
  if (code != kNvmlSuccess) return functions_->Error(code);
  return device;
}

absl::StatusOr<GpuReading> Nvml::Read(unsigned index) const {
  const absl::StatusOr<void*> device = FindHandle(index);
  if (!device.ok()) return device.status();
  CardReader card(*device);
  GpuReading reading;
  reading.name = TextFrom(functions_->name, *device);
  reading.uuid = TextFrom(functions_->uuid, *device);
  if (const auto pci = card.Get<NvmlPciInfo>(functions_->pci_info)) {
    reading.bus_id = pci->bus_id.data();
  }
  if (const auto memory = card.Get<NvmlMemory>(functions_->memory)) {
    reading.memory_used_bytes = memory->used;
    reading.memory_total_bytes = memory->total;
  }
  if (const auto utilization = card.Get<NvmlUtilization>(functions_->utilization)) {
    reading.utilization_ratio = utilization->gpu / 100.0;
  }
  reading.temperature_celsius = card.Get<unsigned>(functions_->temperature, kTemperatureOfGpu);
  if (const auto milliwatts = card.Get<unsigned>(functions_->power)) {
    reading.power_watts = *milliwatts / 1000.0;
  }
  reading.throttle_reasons = card.Get<unsigned long long>(functions_->throttle_reasons);
  reading.ecc_uncorrected_errors =
      card.Get<unsigned long long>(functions_->ecc_errors, kUncorrectedErrors, kVolatileErrors);
  reading.compute_mode = card.Get<unsigned>(functions_->compute_mode);
  if (card.error() != kNvmlSuccess) return functions_->Error(card.error());
  return reading;
}

absl::StatusOr<std::vector<unsigned>> Nvml::ProcessesOn(unsigned index) const {
  const absl::StatusOr<void*> device = FindHandle(index);
  if (!device.ok()) return device.status();
  std::array<NvmlProcess, 64> found{};
  auto count = static_cast<unsigned>(found.size());
  const int code = CallIfThere(functions_->processes, *device, &count, found.data());
  if (code != kNvmlSuccess) return functions_->Error(code);
  std::vector<unsigned> pids;
  for (unsigned i = 0; i < count; ++i) pids.push_back(found[i].pid);
  return pids;
}

absl::StatusOr<std::unique_ptr<XidEvents>> Nvml::WatchXids(unsigned index) const {
  const absl::StatusOr<void*> device = FindHandle(index);
  if (!device.ok()) return device.status();
  if (functions_->event_set_wait == nullptr) return functions_->Error(kNvmlFunctionNotFound);
  NvmlEventSet set = nullptr;
  if (const int code = CallIfThere(functions_->event_set_create, &set); code != kNvmlSuccess) {
    return functions_->Error(code);
  }
  std::unique_ptr<XidEvents> events(new XidEvents(functions_, set));
  const int code = CallIfThere(functions_->register_events, *device, kXidEvent, set);
  if (code != kNvmlSuccess) return functions_->Error(code);
  return events;
}

std::string NvmlLibraryVersion(const std::string& library) {
  const absl::StatusOr<void*> loaded = LoadNvml(library);
  if (!loaded.ok()) return {};
  const std::string version = TextFrom(NvmlFunctions(*loaded).library_version);
  // "12.570.133.20": the first number is that of NVML's interface.
  const std::size_t dot = version.find('.');
  return dot == std::string::npos ? version : version.substr(dot + 1);
}

}  // namespace simile::backend
