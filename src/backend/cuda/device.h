#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include <absl/status/status.h>

#include "backend/accelerator_plugin.h"
#include "backend/cuda/blas_library.h"
#include "backend/cuda/device_error.h"
#include "backend/cuda/kernel_variants.h"
#include "backend/gpu_options.h"
#include "simile/backend.h"

namespace simile::backend::cuda {

// The purpose of device memory, as a label of metrics.
enum class MemoryKind : std::uint8_t {
  kFp16,
  kFp32,
  kInt8,
  kRowNumbers,
  kFilters,
  kWorkspace,
  kCount
};

// One GPU: its error state, its clock and its memory account. After a sticky error, or two batches
// in a row that exceed their timeout, it is *lost*: this process calls CUDA no more, and the memory
// it held is freed when the process ends. Safe to share between threads.
class Device {
 public:
  // Throws DeviceError.
  Device(const GpuOptions& options, const BlasLibrary& blas);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const CardTraits& traits() const { return traits_; }
  const BlasLibrary& blas() const { return blas_; }

  // Makes this the calling thread's device. Throws DeviceError.
  void Enter() { Check(cudaSetDevice(ordinal_), "cudaSetDevice"); }

  // Throws DeviceError unless the call succeeded. A sticky error loses the device.
  void Check(cudaError_t error, const char* call) {
    if (error != cudaSuccess) Fail(error, FormatError(error, call));
  }
  void Check(cublasStatus_t status, const char* call);

  // Waits until the stream is done. Throws DeviceError; LateBatch when the wait exceeds the batch
  // timeout, in which case the device may still use the batch's buffers. If the previous batch was
  // late, too, the device is lost.
  void Await(cudaStream_t stream) {
    AwaitAnswers(stream, [] { return false; });
  }
  // As Await of a stream, for the work before the event.
  void Await(cudaEvent_t event);
  // As Await of an event, but returns as soon as answered() is true, which reads mapped memory.
  template <class Answered>
  void AwaitAnswers(cudaStream_t stream, const Answered& answered) {
    constexpr unsigned kReadsPerPoll = 64;  // estimated: a read takes 5 ns, a poll 1 us
    for (Wait wait(clock_);;) {
      for (unsigned read = 0; read < kReadsPerPoll; ++read) {
        if (answered()) return;
      }
      if (IsDone(stream, wait, batch_timeout_)) return;
      if (wait.late) FailLateBatch();
    }
  }
  // For work whose buffers cannot outlive the call: waits twice the batch timeout, then loses the
  // device. Throws DeviceError.
  void AwaitOrLose(cudaStream_t stream);
  // Call after each batch that was answered in time.
  void BatchWasInTime() { late_in_a_row_.store(0, std::memory_order_relaxed); }

  bool lost() const { return lost_.load(std::memory_order_acquire); }
  absl::Status WhyLost() const;

  // Runs work that may throw and returns its outcome. A lost device runs nothing.
  template <class Work>
  absl::Status Guard(Work work) {
    if (lost()) return WhyLost();
    try {
      work();
    } catch (const DeviceError& error) {
      return lost() ? WhyLost() : error.status();
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError(
          "this machine is out of memory, which the GPU engine needs, too");
    }
    return absl::OkStatus();
  }

  // The memory for all collections and the workspace: a share of the card less a reserve.
  std::uint64_t budget_bytes() const { return budget_bytes_; }
  std::uint64_t held_bytes() const;
  std::uint64_t free_bytes() const {
    const std::uint64_t held = held_bytes();
    return budget_bytes_ > held ? budget_bytes_ - held : 0;
  }
  std::vector<DeviceMemory> memory() const;
  // The card's memory as ReadCardMemory last found it.
  CardMemory card_memory() const;
  // Asks the driver; keeps the former values when it does not answer. Call after memory was
  // allocated or freed, on a thread that may wait for the device. Throws DeviceError for a sticky
  // error.
  void ReadCardMemory();

  // For the owners of memory (device_memory.h). Throws DeviceError.
  void* Allocate(std::size_t bytes, MemoryKind kind);
  void Release(void* memory, std::size_t bytes, MemoryKind kind) noexcept;
  // Destroys a CUDA handle; a sticky error loses the device.
  template <class Destroy>
  void Retire(Destroy destroy) noexcept {
    if (lost()) return;
    if (const cudaError_t error = destroy(); IsSticky(error)) {
      Lose(error, FormatError(error, "cleanup"));
    }
  }

 private:
  struct Account {
    std::uint64_t bytes = 0;
    std::uint64_t peak_bytes = 0;
  };

  // A wait for the device, which polls.
  struct Wait {
    explicit Wait(const Clock& clock) : began(clock.Now()) {}

    const Clock::TimePoint began;
    unsigned polls = 0;
    bool past_timeout = false;
    bool late = false;
  };
  // Polls once; sets wait.late when the time is over. Throws DeviceError.
  bool IsDone(cudaStream_t stream, Wait& wait, std::chrono::milliseconds timeout);
  //   state  the result of the poll
  bool IsDone(cudaError_t state, const char* call, Wait& wait, std::chrono::milliseconds timeout);
  // Throws LateBatch. Loses the device if the previous batch was late, too.
  [[noreturn]] void FailLateBatch();
  [[noreturn]] void LoseToHang(const std::string& message);

  void ThrowIfLost() const;
  [[noreturn]] void Fail(cudaError_t code, const std::string& message);
  void Lose(cudaError_t code, const std::string& message) noexcept;

  const int ordinal_;
  const BlasLibrary blas_;
  const Clock& clock_;
  const std::chrono::milliseconds batch_timeout_;
  CardTraits traits_;
  std::uint64_t budget_bytes_ = 0;

  std::atomic<bool> lost_{false};
  std::atomic<unsigned> late_in_a_row_{0};  // batches
  mutable std::mutex mutex_;                // guards all below
  std::string why_lost_;
  cudaError_t lost_with_ = cudaSuccess;  // also cudaSuccess after a timeout
  std::array<Account, static_cast<std::size_t>(MemoryKind::kCount)> accounts_;
  CardMemory card_memory_;  // of an empty card, until the driver's first answer
};

// Lists the CUDA runtime's devices, or why there are none. Creates no context, so that a broken
// device only adds its line to the report.
void ProbeDevices(SimileDeviceProbe& probe) noexcept;

}  // namespace simile::backend::cuda
