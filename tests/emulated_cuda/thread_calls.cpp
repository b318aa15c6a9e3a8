// Functions that a running kernel calls, forwarded to its block's runner.

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "emulated_cuda/device_state.h"

namespace emulated_cuda {

__thread ThreadContext* current = nullptr;

int BlockBarrier(BarrierKind kind, bool predicate, int line) {
  return current->runner->Barrier(kind, predicate, line);
}

void WarpRendezvous(unsigned mask, void* mine, CompleteWarp complete, int line) {
  current->runner->MeetWarp(mask, mine, complete, line);
}

void PreemptionPoint() {
  if (current != nullptr) current->runner->Preempt();
}

unsigned LoadAcquire(const unsigned* from) { return current->runner->Poll(from); }

void RegisterShared(void* data, std::size_t data_bytes, void* guard, std::size_t guard_bytes) {
  current->runner->Register(data, data_bytes, guard, guard_bytes);
}

void DeviceFault(cudaError_t error, const char* format, ...) {
  char text[200];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  if (current == nullptr) {
    std::fprintf(stderr, "emulated_cuda: device code ran on the host: %s\n", text);
    std::abort();
  }
  current->runner->Fault(error, text);
}

namespace {

// Checked for every 16 bytes that a kernel copies, mostly within the same allocation.
bool IsReadable(const void* from) {
  const DeviceState& state = State();
  return state.memory.Contains(from) ? state.memory.IsLive(from, 16)
                                     : state.host_memory.Contains(from, 16);
}

}  // namespace

// The target is poisoned now and written at the wait.
void AsyncCopy16(void* to, const void* from, bool valid) {
  if (valid && !IsReadable(from)) {
    DeviceFault(cudaErrorIllegalAddress, "cp.async reads outside of any allocation");
  }
  if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0 ||
      (valid && reinterpret_cast<std::uintptr_t>(from) % 16 != 0)) {
    DeviceFault(cudaErrorMisalignedAddress, "cp.async of 16 bytes needs their alignment");
  }
  if (current->runner->IsBehindDynamic(to, 16)) {
    DeviceFault(cudaErrorIllegalAddress, "cp.async writes past the dynamic shared memory");
  }
  Poison(to, 16);
  current->copies.push_back({to, from, valid, current->copy_group});
}

void AsyncCopyCommit() { ++current->copy_group; }

void AsyncCopyWait(int groups_left) {
  std::vector<PendingCopy>& copies = current->copies;
  const auto left = static_cast<unsigned>(groups_left);
  std::size_t done = 0;
  for (; done < copies.size() && copies[done].group + left < current->copy_group; ++done) {
    if (copies[done].valid) {
      std::memcpy(copies[done].to, copies[done].from, 16);
    } else {
      std::memset(copies[done].to, 0, 16);
    }
  }
  copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(done));
}

}  // namespace emulated_cuda
