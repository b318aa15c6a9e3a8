#include "doctor/gpu_examination.h"

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backend/accelerator_plugin.h"
#include "backend/gpu_search.h"
#include "backend/registry.h"
#include "base/error_detail.h"
#include "base/message_text.h"
#include "base/shared_library.h"
#include "doctor/driver_api.h"
#include "doctor/self_check.h"
#include "doctor/symptoms.h"
#include "simile/clock.h"

namespace simile::doctor {
namespace {

constexpr const char* kDriverPaths = "LD_LIBRARY_PATH";
constexpr const char* kCudaDevices = "CUDA_VISIBLE_DEVICES";
constexpr const char* kContainerDevices = "NVIDIA_VISIBLE_DEVICES";
constexpr unsigned kProhibitedMode = 2;

Finding Failed(Finding finding) {
  finding.state = State::kFailed;
  return finding;
}

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

// "NVIDIA H200, 41 C, 1 GiB of 139 GiB used"
std::string CardText(const backend::GpuReading& card) {
  std::string text = card.name.empty() ? "a card" : card.name;
  if (card.temperature_celsius) text += fmt::format(", {} C", *card.temperature_celsius);
  if (card.memory_used_bytes && card.memory_total_bytes) {
    text += fmt::format(", {} of {} used", base::BytesText(*card.memory_used_bytes),
                        base::BytesText(*card.memory_total_bytes));
  }
  return text;
}

// The library that a plug-in of this toolkit loads: "libcublas.so.13" for "CUDA 13.0".
std::string BlasName(std::string_view toolkit) {
  const std::size_t digits = toolkit.find_first_of("0123456789");
  if (digits == std::string_view::npos) return {};
  return fmt::format("libcublas.so.{}", toolkit.substr(digits, toolkit.find('.', digits) - digits));
}

// "cuBLAS 13.1.0, cuBLASLt 13.1.0", as the loaded library and the library it uses report without a
// device; empty if they do not.
std::string BlasVersions(void* library) {
  using PropertyFunction = int (*)(int property, int* value);  // of NVIDIA's library_types.h
  constexpr int kMajorMinorPatch[] = {0, 1, 2};
  std::string text;
  for (const char* name : {"cuBLAS", "cuBLASLt"}) {
    const std::string symbol =
        fmt::format("{}GetProperty", name == std::string_view("cuBLAS") ? "cublas" : "cublasLt");
    const auto ask = reinterpret_cast<PropertyFunction>(dlsym(library, symbol.c_str()));
    if (ask == nullptr) continue;
    std::vector<int> numbers;
    for (const int property : kMajorMinorPatch) {
      if (int number = 0; ask(property, &number) == 0) numbers.push_back(number);
    }
    if (numbers.size() != std::size(kMajorMinorPatch)) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, fmt::join(numbers, "."));
  }
  return text;
}

// The reasons that slow the card down, "hw_thermal_slowdown"; empty if none does.
std::string ThrottledBy(const backend::GpuReading& card) {
  std::vector<std::string> names;
  for (const backend::ThrottleReason& reason : backend::ThrottleReasons()) {
    const bool is_slowed = (card.throttle_reasons.value_or(0) & reason.bit) != 0;
    if (is_slowed && !reason.under_load) names.emplace_back(reason.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

GpuExamination::GpuExamination(const Options& options)
    : options_(options),
      machine_(options.machine),
      place_(FindPlace(machine_)),
      module_(ModuleVersion(machine_)),
      search_(options.backend.gpu_searches.empty() ? backend::DefaultGpuSearches().front()
                                                   : options.backend.gpu_searches.front()) {}

std::string GpuExamination::WhyLeftAlone() const {
  if (!options_.server) return {};
  if (options_.server->gpu_lost) return "left alone: the server lost the device";
  if (options_.server->gpu_left_alone) return "left alone: it was lost too often";
  if (options_.server->gpu_answers) return "left alone: the server uses the device";
  if (options_.backend.preference == backend::Preference::kCpu) {
    return "left alone: the configuration asks for the CPU";
  }
  return {};
}

// The finding if no card can be reached. Says what is missing, from the card itself to the driver's
// modules.
Finding GpuExamination::WithoutCardNodes(std::string_view missing) const {
  const std::vector<std::string> cards = FindCards(machine_);
  if (place_ == Place::kHost) {
    if (!module_.empty()) {
      return Diagnose(kNodes, Symptom::kNodesMissing,
                      {.subject = std::string(missing), .module = module_});
    }
    if (cards.empty()) return Diagnose(kNodes, Symptom::kNoCard, {});
    return Diagnose(kNodes, Symptom::kNoDriver, {.subject = fmt::format("PCI {}", cards.front())});
  }
  const std::optional<std::string> given = machine_.variable(kContainerDevices);
  if (given && GivesNoCard(*given)) {
    return Diagnose(kNodes, Symptom::kHiddenFromContainer, {.value = *given});
  }
  std::string host;
  if (!module_.empty()) {
    host = fmt::format("; its host has driver {}", module_);
  } else if (!cards.empty()) {
    host = fmt::format("; its host has an NVIDIA card (PCI {}) and no driver", cards.front());
  } else {
    host = "; no card or driver of its host can be seen from here";
  }
  return Diagnose(kNodes,
                  place_ == Place::kPod ? Symptom::kPodWithoutGpu : Symptom::kContainerWithoutGpu,
                  {.detail = host});
}

Finding GpuExamination::ExamineNodes() const {
  if (std::error_code error; std::filesystem::exists(machine_.root / "dev" / "dxg", error)) {
    return OkFinding(kNodes, "/dev/dxg: the cards of Windows, through its own driver");
  }
  const std::vector<DeviceNode> nodes = ReadNodes(machine_, WhyLeftAlone().empty());
  constexpr std::size_t kSharedNodes = 2;  // nvidiactl and nvidia-uvm
  if (nodes.size() == kSharedNodes) return WithoutCardNodes("/dev/nvidia0");
  std::vector<std::string> paths;
  for (const DeviceNode& node : nodes) {
    paths.push_back(node.path);
    if (node.error == 0) continue;
    const Evidence evidence = {
        .subject = node.path, .detail = base::SystemErrorText(node.error), .module = module_};
    if (node.error == ENOENT) {
      const bool is_uvm = node.path.ends_with("-uvm");
      return Diagnose(kNodes, is_uvm ? Symptom::kUvmMissing : Symptom::kNodesMissing, evidence);
    }
    if (node.error == EPERM && place_ != Place::kHost) {
      return Diagnose(
          kNodes, Symptom::kAccessLost,
          {.detail = fmt::format("{}: {}", node.path, base::SystemErrorText(node.error))});
    }
    const bool is_denied = node.error == EACCES || node.error == EPERM;
    return Diagnose(kNodes, is_denied ? Symptom::kNodeDenied : Symptom::kNodeDead, evidence);
  }
  return OkFinding(kNodes, fmt::format("{}", fmt::join(paths, ", ")));
}

Finding GpuExamination::ForManagementError(std::string_view probe, const std::string& subject,
                                           const absl::Status& status) const {
  const Evidence evidence = {.subject = subject,
                             .detail = MessageOf(status),
                             .module = module_,
                             .library = backend::NvmlLibraryVersion(options_.nvml_library)};
  switch (backend::ParseNvmlCode(status).value_or(0)) {
    case backend::kNvmlVersionMismatch:
      return Diagnose(probe, Symptom::kVersionMismatch, evidence);
    case backend::kNvmlDriverNotLoaded:
      return Diagnose(probe, Symptom::kModuleNotLoaded, evidence);
    case backend::kNvmlGpuIsLost:
      return Diagnose(probe, Symptom::kFellOffTheBus, evidence);
    case backend::kNvmlResetRequired:
      return Diagnose(probe, Symptom::kResetRequired, evidence);
    case backend::kNvmlUnknown:
      if (place_ != Place::kHost) return Diagnose(probe, Symptom::kAccessLost, evidence);
      break;
    default:
      break;
  }
  return Diagnose(probe, Symptom::kManagementFailed, evidence);
}

Finding GpuExamination::ExamineManagement() {
  absl::StatusOr<std::unique_ptr<backend::Nvml>> opened =
      backend::Nvml::Open(options_.nvml_library);
  if (absl::IsNotFound(opened.status())) {
    return Diagnose(kManagement, Symptom::kManagementMissing,
                    {.detail = MessageOf(opened.status())});
  }
  if (!opened.ok()) return ForManagementError(kManagement, "the card", opened.status());
  const absl::StatusOr<unsigned> count = (*opened)->CountDevices();
  if (!count.ok()) return ForManagementError(kManagement, "the card", count.status());
  nvml_ = *std::move(opened);
  card_count_ = *count;
  return OkFinding(kManagement, fmt::format("NVML of driver {}, {}", nvml_->DriverVersion(),
                                            base::Counted(card_count_, "card")));
}

// The finding for a card that the management library can read.
Finding GpuExamination::ForCard(unsigned index, const backend::GpuReading& card) const {
  const std::string subject = fmt::format("card {} ({})", index, card.name);
  if (card.compute_mode == kProhibitedMode) {
    return Diagnose(kCard, Symptom::kExclusive, {.detail = fmt::format("{}: prohibited", subject)});
  }
  if (const std::uint64_t errors = card.ecc_uncorrected_errors.value_or(0); errors > 0) {
    return Diagnose(
        kCard, Symptom::kMemoryErrors,
        {.subject = subject,
         .detail = fmt::format("{} counted since the driver was loaded", base::Grouped(errors))});
  }
  if (const std::string reasons = ThrottledBy(card); !reasons.empty()) {
    return Diagnose(kCard, Symptom::kThrottled, {.subject = subject, .detail = reasons});
  }
  return OkFinding(kCard, CardText(card));
}

Finding GpuExamination::ForXid(const XidRecord& record) const {
  Finding finding = Diagnose(
      kCard, SymptomOfXid(record.xid),
      {.subject = record.where, .detail = fmt::format("Xid {} in the kernel's log", record.xid)});
  finding.state = State::kWarning;  // the error is past; the other probes say whether it persists
  return finding;
}

// The management library's number of gpu.device's card; nullopt if it is unknown. Without
// CUDA_VISIBLE_DEVICES the library and CUDA number cards equally, unless the machine has cards of
// several kinds.
std::optional<std::size_t> GpuExamination::CardInUse() const {
  if (options_.server && !options_.server->gpu_bus_id.empty()) {
    const absl::StatusOr<unsigned> card = nvml_->IndexAt(options_.server->gpu_bus_id);
    return card.ok() ? std::optional<std::size_t>(*card) : std::nullopt;
  }
  const auto device = static_cast<std::size_t>(options_.backend.gpu.device);
  const std::optional<std::string> visible = machine_.variable(kCudaDevices);
  return visible ? FindVisibleCard(*visible, device, uuids_) : device;
}

Finding GpuExamination::ExamineCard() {
  if (nvml_ == nullptr) return SkippedFinding(kCard, "needs the management library");
  std::vector<Finding> findings;
  std::vector<std::string> texts;
  for (unsigned index = 0; index < card_count_; ++index) {
    const absl::StatusOr<backend::GpuReading> card = nvml_->Read(index);
    uuids_.push_back(card.ok() ? card->uuid : "");
    findings.push_back(
        card.ok() ? ForCard(index, *card)
                  : ForManagementError(kCard, fmt::format("card {}", index), card.status()));
    texts.push_back(findings.back().text);
  }
  const std::optional<std::size_t> in_use = CardInUse();
  for (std::size_t index = 0; index < findings.size(); ++index) {
    // A failure of another card does not keep the card in use from working.
    const bool is_other = findings.size() > 1 && index != in_use;
    if (is_other && findings[index].state == State::kFailed)
      findings[index].state = State::kWarning;
  }
  // Puts the card in use first, because the first of equally grave findings is reported.
  if (in_use && *in_use < findings.size()) std::swap(findings[0], findings[*in_use]);
  for (const XidRecord& record : ReadKernelXids(machine_)) findings.push_back(ForXid(record));
  const auto gravest = std::ranges::min_element(findings, IsGraver);
  if (gravest != findings.end() && gravest->state != State::kOk) return *gravest;
  return OkFinding(kCard, texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, "; ")));
}

// "; processes on it: 4242, 4711": on the card in use, or on all cards if it is unknown. Empty if
// no process is visible.
std::string GpuExamination::Holders() const {
  if (nvml_ == nullptr) return {};
  std::vector<unsigned> pids;
  const std::optional<std::size_t> in_use = CardInUse();
  for (unsigned index = 0; index < card_count_; ++index) {
    if (in_use && index != *in_use) continue;
    const absl::StatusOr<std::vector<unsigned>> found = nvml_->ProcessesOn(index);
    if (found.ok()) pids.insert(pids.end(), found->begin(), found->end());
  }
  return pids.empty() ? "" : fmt::format("; processes on it: {}", fmt::join(pids, ", "));
}

// The finding if the driver reports no card: a variable hides all cards, or there is none.
Finding GpuExamination::ForNoDevice(std::string_view probe, const std::string& detail) const {
  const std::optional<std::string> visible = machine_.variable(kCudaDevices);
  if (visible && HidesAllCards(*visible, uuids_)) {
    return Diagnose(probe, Symptom::kHidden, {.subject = kCudaDevices, .value = *visible});
  }
  const std::optional<std::string> given = machine_.variable(kContainerDevices);
  if (given && GivesNoCard(*given) && place_ != Place::kHost) {
    return Diagnose(probe, Symptom::kHiddenFromContainer, {.value = *given});
  }
  return Diagnose(probe, Symptom::kNoDevice, {.detail = detail});
}

Finding GpuExamination::ForDriverError(std::string_view probe, int code,
                                       const std::string& detail) const {
  const Symptom symptom = SymptomOfDriverError(code);
  if (symptom == Symptom::kNoDevice) return ForNoDevice(probe, detail);
  const std::string library = driver_.library.empty()
                                  ? backend::NvmlLibraryVersion(options_.nvml_library)
                                  : driver_.library;
  Evidence evidence = {.subject = driver_.path,
                       .detail = detail,
                       .value = Variable(kDriverPaths),
                       .module = module_.empty() ? library : module_,
                       .library = library};
  if (symptom == Symptom::kExclusive) evidence.detail += Holders();
  if (symptom == Symptom::kDriverTooOld && plugin_) {
    const auto probed = std::make_unique<SimileDeviceProbe>();
    plugin_->plugin->probe(probed.get());
    evidence.value = std::data(probed->runtime);
    evidence.needed = backend::OldestDriverFor(search_.kind, evidence.value);
  }
  return Failed(Diagnose(probe, symptom, evidence));
}

Finding GpuExamination::ExamineDriver() {
  const std::string& name = search_.driver_library;
  driver_ = AskDriver(name);
  if (!driver_.found) return Diagnose(kDriver, Symptom::kNoDriverLibrary, {.subject = name});
  if (!driver_.load_error.empty()) {
    return Diagnose(kDriver, Symptom::kDriverLibraryBroken,
                    {.subject = name, .detail = driver_.load_error});
  }
  if (driver_.code != 0) return ForDriverError(kDriver, driver_.code, driver_.error);
  if (driver_.devices == 0) return ForNoDevice(kDriver, "cuDeviceGetCount: 0");
  driver_works_ = true;
  const std::string version = driver_.library.empty() ? module_ : driver_.library;
  return OkFinding(
      kDriver,
      fmt::format("{}{}{}, {}", version, version.empty() ? "" : ", ", CudaText(driver_.version),
                  base::Counted(static_cast<std::uint64_t>(driver_.devices), "device")));
}

// Reads the plug-ins' files without asking them for devices, because that calls the driver.
Finding GpuExamination::ReadPlugins() {
  std::vector<std::string> found;
  for (const std::string& path : search_.plugin_paths) {
    if (std::error_code error; !std::filesystem::exists(path, error)) continue;
    const auto plugin = backend::LoadGpuPlugin(path, search_.kind.entry_symbol);
    if (!plugin.ok()) {
      return Diagnose(kPlugin, Symptom::kPluginUnusable, {.detail = MessageOf(plugin.status())});
    }
    if (toolkit_.empty()) toolkit_ = (*plugin)->toolkit;
    found.push_back(fmt::format("{} of {}", std::filesystem::path(path).filename().string(),
                                (*plugin)->toolkit));
  }
  if (found.empty()) return SkippedFinding(kPlugin, "needs the driver; none is beside the program");
  return OkFinding(kPlugin, fmt::format("{}; not asked, because the driver does not work",
                                        fmt::join(found, ", ")));
}

Finding GpuExamination::ExaminePlugin() {
  if (!driver_works_) return ReadPlugins();
  absl::StatusOr<backend::FoundPlugin> found = backend::FindGpuPlugin(search_);
  if (absl::IsNotFound(found.status())) {
    return Diagnose(kPlugin, Symptom::kPluginMissing,
                    {.subject = fmt::format("{}", fmt::join(search_.plugin_paths, " nor "))});
  }
  if (!found.ok()) {
    return Diagnose(kPlugin, Symptom::kPluginUnusable, {.detail = MessageOf(found.status())});
  }
  plugin_ = *std::move(found);
  toolkit_ = plugin_->plugin->toolkit;
  return OkFinding(
      kPlugin, fmt::format("{} of {}{}", plugin_->file, toolkit_,
                           plugin_->others.empty() ? "" : fmt::format(" ({})", plugin_->others)));
}

Finding GpuExamination::ExamineRuntime() {
  if (!plugin_) return SkippedFinding(kRuntime, "needs the plug-in");
  absl::StatusOr<backend::FoundDevice> found =
      backend::FindDevice(*plugin_->plugin, options_.backend.gpu.device, search_.kind);
  if (absl::IsNotFound(found.status())) {
    return Diagnose(kRuntime, Symptom::kNoSuchDevice, {.detail = MessageOf(found.status())});
  }
  if (!found.ok()) {
    return ForDriverError(kRuntime, backend::ParseDeviceError(found.status()).value_or(0),
                          MessageOf(found.status()));
  }
  device_ = *std::move(found);
  return OkFinding(kRuntime,
                   fmt::format("{} ({}), {}", std::data(device_->device.name),
                               base::BytesText(device_->device.memory_bytes), device_->driver));
}

// The names of cuBLAS; the plug-in loads the first that it finds.
std::vector<std::string> GpuExamination::BlasNames() const {
  const std::vector<std::string>& named = options_.backend.gpu.blas_libraries;
  return named.empty() ? std::vector{BlasName(toolkit_)} : named;
}

// The versions of the cuBLAS that the plug-in would load; empty if there is none.
std::string GpuExamination::BlasText() const {
  for (const std::string& name : BlasNames()) {
    const absl::StatusOr<void*> library = base::LoadSharedLibrary(name);
    if (library.ok()) return BlasVersions(*library);
  }
  return {};
}

Finding GpuExamination::ExamineBlas() {
  if (options_.server) {
    return SkippedFinding(kBlas, "not in a server, because it takes device memory");
  }
  if (!device_) {
    if (toolkit_.empty()) return SkippedFinding(kBlas, "needs the runtime");
    const std::string blas = BlasText();
    if (blas.empty()) {
      return SkippedFinding(kBlas, fmt::format("needs the runtime; {} is not found",
                                               fmt::join(BlasNames(), " nor ")));
    }
    return OkFinding(kBlas, fmt::format("{}; not tried, because no device can be used", blas));
  }
  static const RealClock real_clock;
  backend::GpuOptions gpu = options_.backend.gpu;
  if (gpu.clock == nullptr) gpu.clock = &real_clock;
  absl::StatusOr<backend::OpenedGpu> opened = backend::OpenGpu(search_, gpu);
  if (opened.ok()) {
    gpu_ = std::move(opened->backend);
    if (const std::string limitation = gpu_->limitation(); !limitation.empty()) {
      return Diagnose(kBlas, Symptom::kBlasUnusable,
                      {.detail = limitation, .value = Variable(kDriverPaths)});
    }
    const bool is_other = opened->plugin_file != plugin_->file;
    const std::string blas = is_other ? "" : BlasText();
    return OkFinding(
        kBlas, fmt::format("{}{}loaded; the workspace fits{}{}", blas, blas.empty() ? "" : " ",
                           is_other ? ": " : "", is_other ? opened->description : ""));
  }
  const std::string detail = MessageOf(opened.status());
  if (absl::IsResourceExhausted(opened.status())) {
    return Diagnose(kBlas, Symptom::kDoesNotFit, {.detail = detail + Holders()});
  }
  const std::optional<int> code = backend::ParseDeviceError(opened.status());
  if (code) return ForDriverError(kBlas, *code, detail);
  return Diagnose(kBlas, Symptom::kOpenFailed, {.detail = detail});
}

Finding GpuExamination::ExamineKernels() const {
  if (gpu_ == nullptr) return SkippedFinding(kKernels, "needs all of the above");
  const auto failed = [this](const absl::Status& status) {
    const std::optional<int> code = backend::ParseDeviceError(status);
    if (code) return ForDriverError(kKernels, *code, MessageOf(status));
    return Diagnose(kKernels, Symptom::kOpenFailed, {.detail = MessageOf(status)});
  };
  const absl::StatusOr<CheckSample> sample = MakeCheckSample();
  if (!sample.ok()) return failed(sample.status());
  backend::RegistryOptions on_cpu = options_.backend;
  on_cpu.preference = backend::Preference::kCpu;
  const absl::StatusOr<backend::Chosen> cpu = backend::ChooseBackend(on_cpu);
  if (!cpu.ok()) return failed(cpu.status());
  std::vector<SearchResult> results;
  for (Backend* each : {cpu->backend.get(), gpu_.get()}) {
    const auto segment = MakeSegment(*each, *sample);
    if (!segment.ok()) return failed(segment.status());
    absl::StatusOr<SearchResult> result = AnswerQueries(**segment, *sample, kComparedQueries);
    if (!result.ok()) return failed(result.status());
    results.push_back(*std::move(result));
  }
  const std::string difference = FindDifference(results[1], results[0]);
  if (!difference.empty()) {
    return Diagnose(kKernels, Symptom::kWrongAnswers, {.detail = difference});
  }
  return OkFinding(
      kKernels,
      fmt::format("{} queries over {} x {} answered as by the CPU, bit for bit", kComparedQueries,
                  base::Grouped(sample->rows->row_count()), sample->rows->dim()));
}

}  // namespace simile::doctor
