#include "emulated_cuda/host_memory.h"

#include <algorithm>
#include <cstdlib>

#include "emulated/execution.h"

namespace emulated_cuda {

void HostMemory::Reset() {
  for (const auto& [at, range] : ranges_) {
    if (range.ours) std::free(const_cast<char*>(at));
  }
  ranges_.clear();
}

void* HostMemory::Allocate(std::size_t bytes) {
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + 255) / 256 * 256;
  void* const at = rounded < bytes ? nullptr : std::aligned_alloc(256, rounded);
  if (at == nullptr) return nullptr;
  Poison(at, bytes);
  ranges_[static_cast<const char*>(at)] = {bytes, true};
  return at;
}

bool HostMemory::Remove(void* at, bool ours) {
  const auto found = ranges_.find(static_cast<const char*>(at));
  if (found == ranges_.end() || found->second.ours != ours) return false;
  ranges_.erase(found);
  return true;
}

bool HostMemory::Free(void* at) {
  if (!Remove(at, true)) return false;
  std::free(at);
  return true;
}

bool HostMemory::Register(void* at, std::size_t bytes) {
  const auto* const begin = static_cast<const char*>(at);
  const auto next = ranges_.lower_bound(begin);
  if (next != ranges_.end() && next->first < begin + bytes) return false;
  if (next != ranges_.begin()) {
    const auto& [before, range] = *std::prev(next);
    if (before + range.bytes > begin) return false;
  }
  ranges_[begin] = {bytes, false};
  return true;
}

bool HostMemory::Unregister(void* at) { return Remove(at, false); }

bool HostMemory::Contains(const void* at, std::size_t bytes) const {
  const auto* const begin = static_cast<const char*>(at);
  const auto next = ranges_.upper_bound(begin);
  if (next == ranges_.begin()) return false;
  const auto& [from, range] = *std::prev(next);
  const auto offset = static_cast<std::size_t>(begin - from);
  return offset <= range.bytes && bytes <= range.bytes - offset;
}

std::size_t HostMemory::bytes() const {
  std::size_t total = 0;
  for (const auto& [at, range] : ranges_) total += range.bytes;
  return total;
}

}  // namespace emulated_cuda
