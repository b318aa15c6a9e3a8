#include "emulated_cuda/device_state.h"

#include <atomic>
#include <cstdio>
#include <utility>

#include "emulated_cuda/illegal_address.h"
#include "emulated_cuda/poison.h"

namespace emulated_cuda {
namespace {

// Counts devices, so that an error of a device before does not come up again.
std::atomic<std::uint64_t> generation{0};

struct LastError {
  std::uint64_t generation = 0;
  cudaError_t error = cudaSuccess;
};
thread_local LastError last_error;

LastError& ThisThreadsLast() {
  if (last_error.generation != generation) last_error = {generation, cudaSuccess};
  return last_error;
}

}  // namespace

DeviceState& State() {
  static auto* const state = new DeviceState;  // outlives every static that frees device memory
  return *state;
}

void Report(const std::string& text) {
  DeviceState& state = State();
  const std::lock_guard<std::mutex> lock(state.report_mutex);
  state.report += text + "\n";
  if (!state.options.quiet) std::fprintf(stderr, "emulated_cuda: %s\n", text.c_str());
}

void LoseDevice(cudaError_t error) { State().lost = error; }

cudaError_t SetLast(cudaError_t error) {
  if (error != cudaSuccess) ThisThreadsLast().error = error;
  return error;
}

void ResetDevice(const Options& options) {
  DeviceState& state = State();
  const std::lock_guard<std::recursive_mutex> lock(state.mutex);
  WatchIllegalAddresses();
  ++generation;
  state.streams.Reset();
  state.blas.Clear();
  state.graph_execs.Clear();
  state.graphs.Clear();
  state.events.Clear();
  state.host_memory.Reset();
  state.calls.Clear();
  ClearRanges();
  state.kernels.Clear();
  state.options = options;
  state.options.shared_bytes_max = std::min(options.shared_bytes_max, kDynamicSharedMax);
  state.random = Random(options.seed);
  SetPoisonPattern((options.seed & 2) == 0 ? PoisonPattern::kHuge : PoisonPattern::kLargest);
  state.memory.Reset(options.memory_bytes);
  state.lost = state.next_work_fails = cudaSuccess;
  state.hangs = false;
  state.ready = true;
  const std::lock_guard<std::mutex> report_lock(state.report_mutex);
  state.report.clear();
}

void InjectFault(const Fault& fault) {
  const std::lock_guard<std::recursive_mutex> lock(State().mutex);
  if (!State().ready) ResetDevice();
  State().calls.Inject(fault);
}

void EndHang() {
  const std::lock_guard<std::recursive_mutex> lock(State().mutex);
  State().hangs = false;
}

std::size_t CallCount() {
  const std::lock_guard<std::recursive_mutex> lock(State().mutex);
  return State().calls.size();
}

std::vector<std::string> CallLog() {
  const std::lock_guard<std::recursive_mutex> lock(State().mutex);
  return State().calls.Lines();
}

std::string TakeReport() {
  const std::lock_guard<std::mutex> lock(State().report_mutex);
  return std::exchange(State().report, {});
}

std::size_t LiveObjects() {
  const DeviceState& state = State();
  const std::lock_guard<std::recursive_mutex> lock(State().mutex);
  return state.memory.Sizes().size() + state.host_memory.count() + state.streams.count() +
         state.events.size() + state.graphs.size() + state.graph_execs.size() + state.blas.size();
}

std::size_t DeviceBytesInUse() {
  std::size_t total = 0;
  for (const std::size_t bytes : Allocations()) total += bytes;
  return total;
}

std::vector<std::size_t> Allocations() {
  const std::lock_guard<std::recursive_mutex> lock(State().mutex);
  return State().memory.Sizes();
}

std::size_t PinnedBytesInUse() {
  const std::lock_guard<std::recursive_mutex> lock(State().mutex);
  return State().host_memory.bytes();
}

}  // namespace emulated_cuda

using emulated_cuda::State;
using emulated_cuda::ThisThreadsLast;

extern "C" {

// NOLINTBEGIN: these names are CUDA's, not ours.

cudaError_t cudaPeekAtLastError() { return ThisThreadsLast().error; }

// The error of a lost device stays.
cudaError_t cudaGetLastError() {
  const std::lock_guard<std::recursive_mutex> lock(State().mutex);
  return std::exchange(ThisThreadsLast().error, State().lost);
}

// NOLINTEND
}
