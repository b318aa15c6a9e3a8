#include "backend/cuda/device.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "backend/gpu_memory.h"
#include "kernels/row_scan.h"

namespace simile::backend::cuda {
namespace {

// The clock is read once per this many polls. Estimated: a poll takes about 1 us.
constexpr unsigned kPollsPerClockRead = 32;

// Names by MemoryKind.
constexpr std::array kMemoryNames = {"rows-fp16",   "rows-fp32", "rows-int8",
                                     "row-numbers", "filters",   "workspace"};
static_assert(kMemoryNames.size() == static_cast<std::size_t>(MemoryKind::kCount));

// The most likely CUDA error behind a cuBLAS status.
cudaError_t ToCudaError(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_ALLOC_FAILED) return cudaErrorMemoryAllocation;
  const cudaError_t last = cudaGetLastError();
  return last != cudaSuccess ? last : cudaErrorNotSupported;
}

void Copy(char (&to)[SIMILE_PLUGIN_TEXT_BYTES], const char* text) {
  std::snprintf(to, sizeof(to), "%s", text);
}

// 12080 becomes "CUDA 12.8".
void SetVersion(char (&to)[SIMILE_PLUGIN_TEXT_BYTES], int version) {
  if (version == 0) return;  // there is no driver
  std::snprintf(to, sizeof(to), "CUDA %d.%d", version / 1000, version % 1000 / 10);
}

void SetError(SimileDeviceProbe& probe, cudaError_t error) {
  probe.error = static_cast<std::int32_t>(error);
  Copy(probe.error_name, cudaGetErrorName(error));
  Copy(probe.error_text, cudaGetErrorString(error));
}

}  // namespace

Device::Device(const GpuOptions& options, const BlasLibrary& blas)
    : ordinal_(options.device),
      blas_(blas),
      clock_(*options.clock),
      batch_timeout_(options.batch_timeout) {
  Enter();
  cudaDeviceProp properties{};
  Check(cudaGetDeviceProperties(&properties, ordinal_), "cudaGetDeviceProperties");
  traits_.name = properties.name;
  traits_.multiprocessors = static_cast<unsigned>(properties.multiProcessorCount);
  traits_.shared_bytes_max = properties.sharedMemPerBlockOptin;
  traits_.l2_bytes = static_cast<std::size_t>(properties.l2CacheSize);
  traits_.memory_bytes = properties.totalGlobalMem;
  traits_.capability = properties.major * 10 + properties.minor;
  // If the call fails, the card's own capability is assumed, and the first use of a kernel gives
  // the error.
  int architecture = traits_.capability;
  if (kernels::ArchitectureOfRowScan(architecture) != cudaSuccess) (void)cudaGetLastError();
  traits_.code_capability = std::min(architecture, traits_.capability);
  budget_bytes_ = GpuBudgetBytes(options, traits_.memory_bytes);
  card_memory_ = {traits_.memory_bytes, traits_.memory_bytes};
}

void Device::Check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) Fail(ToCudaError(status), FormatError(status, call));
}

void Device::Await(cudaEvent_t event) {
  for (Wait wait(clock_);;) {
    ThrowIfLost();  // another thread may have lost the device
    if (IsDone(cudaEventQuery(event), "cudaEventQuery", wait, batch_timeout_)) return;
    if (wait.late) FailLateBatch();
  }
}

bool Device::IsDone(cudaStream_t stream, Wait& wait, std::chrono::milliseconds timeout) {
  ThrowIfLost();
  return IsDone(cudaStreamQuery(stream), "cudaStreamQuery", wait, timeout);
}

bool Device::IsDone(cudaError_t state, const char* call, Wait& wait,
                    std::chrono::milliseconds timeout) {
  if (state == cudaSuccess) return true;
  if (state != cudaErrorNotReady) Check(state, call);
  if (++wait.polls % kPollsPerClockRead != 0 || clock_.Now() - wait.began < timeout) return false;
  // Polls once more, because the process may have been suspended between the poll and the clock.
  wait.late = std::exchange(wait.past_timeout, true);
  return false;
}

void Device::AwaitOrLose(cudaStream_t stream) {
  const std::chrono::milliseconds timeout = 2 * batch_timeout_;
  for (Wait wait(clock_); !IsDone(stream, wait, timeout);) {
    if (wait.late) {
      LoseToHang(fmt::format("the GPU hangs: work was not finished after {} ms", timeout.count()));
    }
  }
}

void Device::FailLateBatch() {
  if (late_in_a_row_.fetch_add(1, std::memory_order_relaxed) == 0) {
    throw LateBatch(fmt::format("a batch was not finished after {} ms", batch_timeout_.count()));
  }
  LoseToHang(fmt::format("the GPU hangs: two batches in a row were not finished after {} ms each",
                         batch_timeout_.count()));
}

void Device::LoseToHang(const std::string& message) {
  Lose(cudaSuccess, message);  // no CUDA call has failed
  throw DeviceError(cudaErrorLaunchTimeout, message);
}

void Device::Fail(cudaError_t code, const std::string& message) {
  cudaGetLastError();  // clears an error that is not sticky
  if (IsSticky(code)) Lose(code, message);
  throw DeviceError(code, message);
}

void Device::Lose(cudaError_t code, const std::string& message) noexcept {
  const std::lock_guard lock(mutex_);
  if (lost()) return;
  why_lost_ = message;
  lost_with_ = code;
  lost_.store(true, std::memory_order_release);
}

absl::Status Device::WhyLost() const {
  const std::lock_guard lock(mutex_);
  absl::Status status = absl::UnavailableError(why_lost_);
  return lost_with_ == cudaSuccess ? status : WithCudaError(std::move(status), lost_with_);
}

std::uint64_t Device::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return std::accumulate(
      accounts_.begin(), accounts_.end(), std::uint64_t{0},
      [](std::uint64_t sum, const Account& account) { return sum + account.bytes; });
}

std::vector<DeviceMemory> Device::memory() const {
  const std::lock_guard lock(mutex_);
  std::vector<DeviceMemory> all;
  for (std::size_t i = 0; i < accounts_.size(); ++i) {
    all.push_back({kMemoryNames[i], accounts_[i].bytes, accounts_[i].peak_bytes});
  }
  return all;
}

CardMemory Device::card_memory() const {
  const std::lock_guard lock(mutex_);
  return card_memory_;
}

void Device::ReadCardMemory() {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  const cudaError_t error = cudaMemGetInfo(&free_bytes, &total_bytes);
  if (IsSticky(error)) Fail(error, FormatError(error, "cudaMemGetInfo"));
  if (error != cudaSuccess) {
    cudaGetLastError();  // a number in a report is no reason to fail
    return;
  }
  const std::lock_guard lock(mutex_);
  card_memory_ = {total_bytes, free_bytes};
}

void Device::ThrowIfLost() const {
  if (!lost()) return;
  const std::lock_guard lock(mutex_);
  throw DeviceError(lost_with_, why_lost_);
}

void* Device::Allocate(std::size_t bytes, MemoryKind kind) {
  ThrowIfLost();
  void* memory = nullptr;
  Check(cudaMalloc(&memory, bytes), "cudaMalloc");
  const std::lock_guard lock(mutex_);
  Account& account = accounts_[static_cast<std::size_t>(kind)];
  account.bytes += bytes;
  account.peak_bytes = std::max(account.peak_bytes, account.bytes);
  return memory;
}

void Device::Release(void* memory, std::size_t bytes, MemoryKind kind) noexcept {
  Retire([memory] { return cudaFree(memory); });
  const std::lock_guard lock(mutex_);
  accounts_[static_cast<std::size_t>(kind)].bytes -= bytes;
}

void ProbeDevices(SimileDeviceProbe& probe) noexcept {
  probe = SimileDeviceProbe{};
  // The versions are known even when the devices cannot be listed. A version that cannot be read
  // stays empty.
  int version = 0;
  if (cudaRuntimeGetVersion(&version) == cudaSuccess) SetVersion(probe.runtime, version);
  if (cudaDriverGetVersion(&version) == cudaSuccess) SetVersion(probe.driver, version);

  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    return SetError(probe, error);
  }
  if (count == 0) return SetError(probe, cudaErrorNoDevice);
  for (int id = 0; id < count && probe.device_count < SIMILE_PLUGIN_DEVICES_MAX; ++id) {
    cudaDeviceProp properties{};
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, id); error != cudaSuccess) {
      return SetError(probe, error);
    }
    SimileDevice& device = probe.devices[probe.device_count++];
    Copy(device.name, properties.name);
    device.memory_bytes = properties.totalGlobalMem;
    std::snprintf(device.bus_id, sizeof(device.bus_id), "%04x:%02x:%02x.0",
                  static_cast<unsigned>(properties.pciDomainID),
                  static_cast<unsigned>(properties.pciBusID),
                  static_cast<unsigned>(properties.pciDeviceID));
  }
}

}  // namespace simile::backend::cuda
