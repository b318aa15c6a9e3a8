#include "doctor/symptoms.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include <fmt/args.h>
#include <fmt/format.h>

namespace simile::doctor {
namespace {

constexpr State kFail = State::kFailed;
constexpr State kWarn = State::kWarning;

// Sources: CUDA's and NVML's lists of error codes; NVIDIA's tables of Xid errors and of CUDA
// compatibility; the container toolkit's documentation and its issue 48.
constexpr SymptomRow kRows[] = {
    {Symptom::kNoCard, "no_card", kFail, "this machine has no NVIDIA card",
     "nothing to repair; on a machine that has one, `lspci -d 10de:` lists it"},
    {Symptom::kNoDriver, "no_driver", kFail,
     "an NVIDIA card is here ({subject}), but no driver is loaded",
     "install NVIDIA's driver and reboot; if it is installed, `modprobe nvidia` and "
     "`dmesg | grep -i nvidia` say why it is not loaded (Secure Boot: an unsigned module)"},
    {Symptom::kContainerWithoutGpu, "container_without_gpu", kFail,
     "this container was started without a GPU: it has no /dev/nvidia*{detail}",
     "`docker run --gpus all`, or `runtime: nvidia` in compose (docker/compose.gpu.yaml); with "
     "Podman `podman run --device nvidia.com/gpu=all`, after `nvidia-ctk cdi generate`."
     "\nWhen Docker answers `unknown runtime` or `could not select device driver`, the host lacks "
     "the toolkit: there, install nvidia-container-toolkit ({toolkit} or later), run "
     "`nvidia-ctk runtime configure --runtime=docker`, and restart Docker (docs/operations.md)"},
    {Symptom::kPodWithoutGpu, "pod_without_gpu", kFail,
     "this pod was started without a GPU: it has no /dev/nvidia*{detail}",
     "ask for one in the pod (`resources: limits: nvidia.com/gpu: 1`; deploy/kubernetes);"
     "\nwhen none can be had, `kubectl describe node` must show nvidia.com/gpu: the cluster needs "
     "NVIDIA's device plug-in, and its nodes the container toolkit"},
    {Symptom::kHiddenFromContainer, "hidden_from_container", kFail,
     "this container gets no GPU: NVIDIA_VISIBLE_DEVICES is \"{value}\"",
     "set NVIDIA_VISIBLE_DEVICES to all, or to a number or UUID of `nvidia-smi -L` on the host, "
     "and recreate the container"},
    {Symptom::kNodesMissing, "nodes_missing", kFail,
     "driver {module} is loaded, but {subject} is missing",
     "as root: `nvidia-modprobe -c=0`; in a container, recreate it after that"},
    {Symptom::kUvmMissing, "uvm_missing", kFail,
     "/dev/nvidia-uvm is missing: the module nvidia-uvm is not loaded",
     "as root, on the host: `nvidia-modprobe -u -c=0`; then recreate containers"},
    {Symptom::kNodeDenied, "node_denied", kFail, "{subject}: {detail}",
     "`ls -l {subject}` shows its group and mode: add the user to the group (in a container: "
     "--group-add), or let all use it (option NVreg_DeviceFileMode=0666 of the module nvidia). "
     "Where SELinux keeps a container out: `--security-opt label=disable`, or `setsebool -P "
     "container_use_devices on`"},
    {Symptom::kNodeDead, "node_dead", kFail, "{subject}: {detail}: no card answers behind it",
     "`dmesg | grep -i nvrm` says why; a card that is gone needs a reset or a reboot; a container "
     "that was made before cards changed places must be recreated"},
    {Symptom::kAccessLost, "access_lost", kFail,
     "this container has lost its access to the GPU ({detail}), as after `systemctl "
     "daemon-reload` on the host",
     "recreate the container.\nFor good, one of: devices by CDI; `nvidia-ctk system "
     "create-dev-char-symlinks --create-all` at each boot; Docker's cgroup driver cgroupfs "
     "(\"exec-opts\": [\"native.cgroupdriver=cgroupfs\"] in daemon.json)"},
    {Symptom::kVersionMismatch, "version_mismatch", kFail,
     "kernel module {module}, library {library}: the driver was changed and one of the two is "
     "still the old one",
     "reboot, or unload and load the nvidia modules; then recreate containers: a restarted one "
     "keeps the libraries that it was made with."
     "\ncompose: `docker compose up --force-recreate`; where `runtime: nvidia` refuses to start, "
     "compose.gpu-reservations.yaml does.\nPlain Docker: `docker rm`, then `docker run --gpus "
     "all`"},
    {Symptom::kModuleNotLoaded, "module_not_loaded", kFail,
     "the driver's libraries are here, but its kernel module is not loaded ({detail})",
     "on the host: `modprobe nvidia`; `dmesg | grep -i nvidia` says why that fails (Secure Boot: "
     "an unsigned module; a new kernel: the module must be built for it)"},
    {Symptom::kManagementMissing, "management_missing", kWarn,
     "{detail}: temperature, memory and faults of the card cannot be seen",
     "in a container, NVIDIA_DRIVER_CAPABILITIES must name utility (`compute,utility`); on a host, "
     "install the driver's libnvidia-ml"},
    {Symptom::kManagementFailed, "management_failed", kFail, "{detail}",
     "`nvidia-smi` fails alike; `dmesg | grep -i nvrm` says why"},
    {Symptom::kFellOffTheBus, "fell_off_the_bus", kFail,
     "{subject} is lost ({detail}): it has fallen off the bus",
     "drain this machine, and reset the card (`nvidia-smi -r`) or power-cycle the machine; when "
     "it comes back: power, seat and temperature of the card"},
    {Symptom::kResetRequired, "reset_required", kFail, "{subject} needs a reset ({detail})",
     "stop what uses it, then `nvidia-smi -r`, or reboot"},
    {Symptom::kMemoryErrors, "memory_errors", kWarn,
     "{subject} has had memory errors that could not be corrected ({detail})",
     "drain and reset the card (`nvidia-smi -r`); replace it when they come back"},
    {Symptom::kOtherXid, "xid", kWarn, "the driver reports {detail} on {subject}",
     "look it up in NVIDIA's table of Xid errors (docs.nvidia.com/deploy/xid-errors)"},
    {Symptom::kApplicationFault, "application_fault", kWarn,
     "a program on {subject} failed ({detail}); the card itself is well",
     "if the program was Simile, report it, with the output of `simile doctor --json` and the "
     "lines of `dmesg | grep -i xid`"},
    {Symptom::kThrottled, "throttled", kWarn, "{subject} has slowed itself down: {detail}",
     "`nvidia-smi -q -d TEMPERATURE,POWER,PERFORMANCE` says why; thermal: better cooling; power "
     "brake: the machine's power supply"},
    {Symptom::kNoDriverLibrary, "no_driver_library", kFail,
     "{subject}, the driver's library for programs, is not found",
     "in a container, NVIDIA_DRIVER_CAPABILITIES must name compute (`compute,utility`); on a "
     "host, install the driver's libcuda ({subject}) for its version"},
    {Symptom::kDriverLibraryBroken, "driver_library_broken", kFail,
     "{subject} cannot be loaded: {detail}",
     "reinstall the driver: its kernel module and its libraries must have one version"},
    {Symptom::kStubLibrary, "stub_library", kFail,
     "{subject} is the CUDA toolkit's stub, which is for linking, and no driver",
     "remove the folder `stubs` from LD_LIBRARY_PATH (it is \"{value}\")"},
    {Symptom::kDriverTooOld, "driver_too_old", kFail,
     "driver {module} is too old for this build's GPU plug-in ({value}), which needs {needed} or "
     "later",
     "upgrade the driver; or install the plug-in of CUDA 12, for drivers from 525, beside this one "
     "(libsimile_cuda12.so, which `make cuda12` builds; in a container take the image that `make "
     "image TARGET=gpu` builds); or stay on the CPU"},
    {Symptom::kForwardCompatibility, "forward_compatibility", kFail,
     "the library {subject} is of the package cuda-compat, which this card does not support",
     "remove cuda-compat from the image or from LD_LIBRARY_PATH, and upgrade the driver"},
    {Symptom::kHidden, "hidden", kFail, "the cards are hidden: {subject} is \"{value}\"",
     "unset {subject}, or set it to a number or a UUID of `nvidia-smi -L`; a container counts its "
     "cards from 0, whatever their numbers on the host are"},
    {Symptom::kNoDevice, "no_device", kFail, "the driver finds no card ({detail})",
     "`nvidia-smi -L` must list it; `dmesg | grep -i nvrm` says why it does not"},
    {Symptom::kNoCodeForCard, "no_code_for_card", kFail, "{detail}",
     "take a build for this card (SIMILE_CUDA_CARDS=all; for cards before Turing the preset "
     "cuda12), or stay on the CPU"},
    {Symptom::kPtxTooNew, "ptx_too_new", kFail,
     "the plug-in's code is newer than the driver {module} can translate ({detail})",
     "upgrade the driver, or take a build with an older CUDA"},
    {Symptom::kExclusive, "exclusive", kFail,
     "the card's compute mode keeps this process out ({detail})",
     "let all processes use it: `nvidia-smi -c 0` as root; in an exclusive mode, stopping the "
     "process that has the card helps, too"},
    {Symptom::kFabricManager, "fabric_manager", kFail,
     "the machine's NVLink fabric is not ready ({detail})",
     "`systemctl start nvidia-fabricmanager`, of the driver's version"},
    {Symptom::kMps, "mps", kFail, "the Multi-Process Service (MPS) does not answer ({detail})",
     "restart it: `echo quit | nvidia-cuda-mps-control`, then `nvidia-cuda-mps-control -d`; in a "
     "container, mount its folder (CUDA_MPS_PIPE_DIRECTORY)"},
    {Symptom::kAfterSleep, "after_sleep", kFail,
     "the driver fails without a reason ({detail}), as it does after the machine slept",
     "as root, on the host: stop what uses the card, then `rmmod nvidia_uvm && modprobe "
     "nvidia_uvm`, or reboot; then restart the server. For good: the option "
     "NVreg_PreserveVideoMemoryAllocations=1 of the module nvidia, and the services nvidia-suspend "
     "and nvidia-resume"},
    {Symptom::kDriverError, "driver_error", kFail, "{detail}",
     "`nvidia-smi` and `dmesg | grep -i nvrm` may say more; then reload the driver or reboot"},
    {Symptom::kPluginMissing, "plugin_missing", kFail,
     "this build has no GPU plug-in: neither {subject}",
     "take the GPU image, or build one: `make` does where nvcc is, `make cuda12` without nvcc"},
    {Symptom::kPluginUnusable, "plugin_unusable", kFail, "{detail}",
     "install the server and its plug-in together, of one build"},
    {Symptom::kNoSuchDevice, "no_such_device", kFail, "{detail}",
     "set --gpu-device (gpu.device) to one of these"},
    {Symptom::kBlasUnusable, "blas_unusable", kWarn, "{detail}",
     "install libcublas and libcublasLt of one version for the CUDA that is named, or put their "
     "folder on LD_LIBRARY_PATH (it is \"{value}\")"},
    {Symptom::kDoesNotFit, "does_not_fit", kFail, "{detail}",
     "free the card, raise --gpu-memory-fraction, lower gpu.reserve_mib; or shard, or stay on the "
     "CPU (`simile plan` computes what a collection takes)"},
    {Symptom::kOpenFailed, "open_failed", kFail, "{detail}",
     "`dmesg | grep -i nvrm` may say more; a reset or reboot clears what a program left behind"},
    {Symptom::kWrongAnswers, "wrong_answers", kFail, "the GPU computes wrong: {detail}",
     "use the CPU (--backend cpu), and report it with the output of `simile doctor --json`"},
    {Symptom::kHang, "hang", kFail, "no answer within {value}: the driver or the card hangs",
     "`dmesg | grep -i nvrm`; reset the card (`nvidia-smi -r`) or reboot"},
    {Symptom::kCrash, "crash", kFail, "the probe ended by {detail}",
     "the library that was called is broken; reinstall the driver: its kernel module and its "
     "libraries must have one version"},
    {Symptom::kLostTooOften, "lost_too_often", kFail, "{detail}",
     "find out why it is lost (the rows above, `dmesg | grep -i xid`); removing the journal "
     "{subject} tries it at once"},
    {Symptom::kLostRecently, "lost_recently", kWarn, "{detail}",
     "the rows above and `dmesg | grep -i xid` may say why; three in ten minutes keep a server "
     "on the CPU"},
    {Symptom::kRoutedByConfiguration, "routed_by_configuration", kWarn,
     "the configuration asks for the CPU ({detail})",
     "to use a GPU, set backend.preference to auto"},
    {Symptom::kToolkitMissing, "toolkit_missing", kWarn,
     "Docker is here, but not nvidia-container-toolkit: no container can get this card",
     "install nvidia-container-toolkit ({toolkit} or later), run `nvidia-ctk runtime configure "
     "--runtime=docker`, and restart Docker (docs/operations.md); then `docker run --gpus all` "
     "or `runtime: nvidia`"},
    {Symptom::kToolkitOld, "toolkit_old", kWarn,
     "nvidia-container-toolkit {value} has a flaw that lets a container take over its host "
     "(CVE-2025-23266)",
     "upgrade it to {toolkit} or later"},
    {Symptom::kRuntimeNotRegistered, "runtime_not_registered", kWarn,
     "Docker does not know the runtime nvidia: `docker run --gpus all` works, `runtime: nvidia` "
     "does not",
     "`nvidia-ctk runtime configure --runtime=docker`, and restart Docker"},
    {Symptom::kLostByServer, "lost_by_server", kFail, "{detail}",
     "`dmesg | grep -i xid` says what happened to the card; a restart of the server tries it "
     "again (--on-gpu-fault restart does that by itself)"},
    {Symptom::kServerOnCpu, "server_on_cpu", kFail,
     "the server chose the CPU when it started: {detail}",
     "it looks for a GPU only when it starts: restart it once `simile doctor` beside it finds "
     "the GPU usable"},
    {Symptom::kCollectionOnCpu, "collection_on_cpu", kFail,
     "{subject} is answered by the CPU: {detail}",
     "free device memory (unload a collection, raise --gpu-memory-fraction) and reload it; "
     "`simile plan` computes what it takes"},
    {Symptom::kBatchesOnCpu, "batches_on_cpu", kWarn, "{detail}",
     "out of memory: lower limits.batch_queries_max or raise --gpu-memory-fraction; failed calls: "
     "simile_device_errors_total has their codes; late: see what else uses the card "
     "(`nvidia-smi`), or raise gpu.batch_timeout"},
    {Symptom::kCpuBroken, "cpu_broken", kFail, "the CPU engine does not answer: {detail}",
     "this build does not suit this processor; see backend.isa in `simile config --print`"},
};

}  // namespace

std::span<const SymptomRow> SymptomRows() { return kRows; }

Finding Diagnose(std::string_view probe, Symptom symptom, const Evidence& evidence) {
  const SymptomRow* row = std::ranges::find(kRows, symptom, &SymptomRow::symptom);
  assert(row != std::end(kRows));
  const auto filled = [&evidence](const char* text) {
    return fmt::format(fmt::runtime(text), fmt::arg("subject", evidence.subject),
                       fmt::arg("detail", evidence.detail), fmt::arg("value", evidence.value),
                       fmt::arg("module", evidence.module.empty() ? "unknown" : evidence.module),
                       fmt::arg("library", evidence.library.empty() ? "unknown" : evidence.library),
                       fmt::arg("needed", evidence.needed), fmt::arg("toolkit", kSafeToolkit));
  };
  return {std::string(probe), row->state, filled(row->text), filled(row->fix), row->name};
}

bool IsGraver(const Finding& finding, const Finding& than) {
  const auto gravity = [](const Finding& of) {
    const auto* row = std::ranges::find(kRows, of.symptom, &SymptomRow::name);
    return std::pair(of.state != State::kFailed, row);
  };
  return gravity(finding) < gravity(than);
}

Symptom SymptomOfDriverError(int code) {
  switch (code) {
    case 2:
      return Symptom::kDoesNotFit;
    case 34:
      return Symptom::kStubLibrary;
    case 35:
      return Symptom::kDriverTooOld;
    case 46:
      return Symptom::kExclusive;
    case 100:
      return Symptom::kNoDevice;
    case 98:
    case 209:
      return Symptom::kNoCodeForCard;
    case 214:
      return Symptom::kMemoryErrors;
    case 222:
      return Symptom::kPtxTooNew;
    case 802:
      return Symptom::kFabricManager;
    case 803:
      return Symptom::kVersionMismatch;
    case 804:
      return Symptom::kForwardCompatibility;
    case 805:
    case 806:
    case 807:
    case 808:
    case 809:
    case 810:
      return Symptom::kMps;
    case 999:
      return Symptom::kAfterSleep;
    default:
      return Symptom::kDriverError;
  }
}

Symptom SymptomOfXid(std::uint64_t xid) {
  switch (xid) {
    case 13:
    case 31:
    case 43:
      return Symptom::kApplicationFault;
    case 48:
    case 63:
    case 64:
    case 94:
    case 95:
      return Symptom::kMemoryErrors;
    case 79:
      return Symptom::kFellOffTheBus;
    default:
      return Symptom::kOtherXid;
  }
}

}  // namespace simile::doctor
