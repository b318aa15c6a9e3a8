#include <nvtx3/nvToolsExt.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "emulated_cuda/device_state.h"
#include "emulated_cuda/emulated_device.h"

namespace emulated_cuda {
namespace {

std::mutex mutex;  // guards what follows
std::map<std::string, std::size_t> counts;
std::size_t open = 0;

// The ranges of a thread that are open, each with those around it.
thread_local std::vector<std::string> paths;

}  // namespace

std::map<std::string, std::size_t> RangeCounts() {
  const std::lock_guard lock(mutex);
  return counts;
}

std::size_t OpenRanges() {
  const std::lock_guard lock(mutex);
  return open;
}

void ClearRanges() {
  const std::lock_guard lock(mutex);
  counts.clear();
}

}  // namespace emulated_cuda

int nvtxRangePushA(const char* message) {
  using namespace emulated_cuda;
  paths.push_back(paths.empty() ? message : paths.back() + "/" + message);
  const std::lock_guard lock(mutex);
  ++counts[paths.back()];
  ++open;
  return static_cast<int>(paths.size()) - 1;
}

int nvtxRangePop() {
  using namespace emulated_cuda;
  if (paths.empty()) {
    Report("nvtxRangePop without a range");
    return -1;
  }
  paths.pop_back();
  const std::lock_guard lock(mutex);
  --open;
  return static_cast<int>(paths.size());
}
