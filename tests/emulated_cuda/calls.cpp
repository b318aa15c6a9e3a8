#include "emulated_cuda/calls.h"

#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>

#include "emulated_cuda/device_state.h"

namespace emulated_cuda {
namespace {

// A test of a whole program has the device hang by making the file that this variable names.
bool IsToldToHang() {
  static const char* const file = std::getenv("EMULATED_CUDA_HANG_FILE");
  return file != nullptr && access(file, F_OK) == 0;
}

}  // namespace

void CallRecord::Clear() {
  entries_.clear();
  faults_.clear();
}

bool CallRecord::Matches(const Fault& fault, const Entry& entry) {
  if (fault.name.empty() || fault.name == entry.name) return true;
  return entry.kernel != nullptr &&
         State().kernels.Find(entry.kernel).name.find(fault.name) != std::string::npos;
}

cudaError_t CallRecord::Enter(const char* name, const void* kernel) {
  DeviceState& state = State();
  entries_.push_back({name, kernel});
  if (IsToldToHang()) state.hangs = true;
  for (Fault& fault : faults_) {
    if (fault.nth == 0 || !Matches(fault, entries_.back()) || --fault.nth > 0) continue;
    if (fault.hang) {
      state.hangs = true;
    } else if (fault.asynchronous) {
      state.next_work_fails = fault.error;
    } else {
      if (fault.sticky) LoseDevice(fault.error);
      return SetLast(fault.error);
    }
  }
  return SetLast(state.lost);
}

std::vector<std::string> CallRecord::Lines() const {
  std::vector<std::string> lines;
  for (const Entry& entry : entries_) {
    lines.push_back(entry.kernel == nullptr ? std::string(entry.name)
                                            : fmt::format("{}:{}", entry.name,
                                                          State().kernels.Find(entry.kernel).name));
  }
  return lines;
}

Call::Call(const char* name, const void* kernel) : lock_(State().mutex) {
  if (!State().ready) ResetDevice();
  error_ = State().calls.Enter(name, kernel);
}

}  // namespace emulated_cuda
