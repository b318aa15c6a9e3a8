#include "emulated_cuda/device_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>

#include "emulated/execution.h"
#include "emulated_cuda/poison.h"
#include "emulated_cuda/sanitizer.h"

namespace emulated_cuda {
namespace {

constexpr std::size_t kGranule = 256;  // what cudaMalloc aligns to
constexpr std::size_t kRedZone = 256;
constexpr std::size_t kPageBytes = 4096;

std::size_t RoundUp(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}
// What lies behind an allocation: a red zone, up to the next granule.
std::size_t BytesBehind(std::size_t bytes) { return RoundUp(bytes + kRedZone, kGranule) - bytes; }

}  // namespace

DeviceMemory::~DeviceMemory() { Reset(0); }

void DeviceMemory::Reset(std::size_t bytes) {
  if (arena_ != nullptr) {
    UnpoisonRegion(arena_, touched_bytes_);
    munmap(arena_, arena_bytes_);
  }
  arena_ = nullptr;
  live_.clear();
  bytes_ = bytes;
  used_ = touched_bytes_ = 0;
  if (bytes == 0) return;
  // Extra space for red zones, and for gaps too small to reuse.
  arena_bytes_ = RoundUp(2 * bytes + (std::size_t{64} << 20), kPageBytes);
  void* const map =
      mmap(nullptr, arena_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) {
    std::perror("emulated_cuda: no addresses for the device's memory");
    std::abort();
  }
  arena_ = static_cast<char*>(map);
}

DeviceMemory::Access::Access(DeviceMemory& memory) : memory_(memory) {
  if (memory_.access_count_++ == 0) memory_.Protect(true);
}
DeviceMemory::Access::~Access() {
  if (--memory_.access_count_ == 0) memory_.Protect(false);
}

void DeviceMemory::Protect(bool readable) const {
  if (touched_bytes_ > 0) {
    mprotect(arena_, touched_bytes_, readable ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
}

void* DeviceMemory::Allocate(std::size_t bytes) {
  const std::size_t cost = RoundUp(bytes, kGranule);
  if (cost < bytes || cost > free_bytes()) return nullptr;
  char* at = arena_ + kRedZone;
  for (const auto& [live, size] : live_) {
    if (at + bytes + BytesBehind(bytes) + kRedZone <= live) break;
    at = const_cast<char*>(live) + size + BytesBehind(size) + kRedZone;
  }
  char* const begin = at - kRedZone;
  char* const end = at + bytes + BytesBehind(bytes);
  if (end > arena_ + arena_bytes_) return nullptr;
  touched_bytes_ =
      std::max(touched_bytes_, RoundUp(static_cast<std::size_t>(end - arena_), kPageBytes));
  if (access_count_ > 0) Protect(true);
  {
    const Access access(*this);
    const auto whole = static_cast<std::size_t>(end - begin);
    UnpoisonRegion(begin, whole);
    Poison(begin, whole);
    PoisonRegion(begin, whole);
    UnpoisonRegion(at, bytes);
  }
  live_[at] = bytes;
  used_ += cost;
  return at;
}

bool DeviceMemory::IsAllocation(const void* at) const {
  return live_.count(static_cast<const char*>(at)) != 0;
}

void DeviceMemory::Free(void* at) {
  const auto found = live_.find(static_cast<const char*>(at));
  assert(found != live_.end());
  {
    const Access access(*this);
    Poison(at, found->second);
    PoisonRegion(at, found->second);
  }
  used_ -= RoundUp(found->second, kGranule);
  live_.erase(found);
}

bool DeviceMemory::IsLive(const void* at, std::size_t bytes) const {
  const auto* const begin = static_cast<const char*>(at);
  auto next = live_.upper_bound(begin);
  if (next == live_.begin()) return false;
  --next;
  const auto offset = static_cast<std::size_t>(begin - next->first);
  return offset <= next->second && bytes <= next->second - offset;
}

// Under AddressSanitizer nothing reaches a red zone: it stops at the instruction that would.
std::string DeviceMemory::BrokenRedZone(const char* at, std::size_t bytes) const {
  if (kAddressSanitizer) return {};
  const std::size_t before = FirstNotPoison(at - kRedZone, kRedZone);
  if (before < kRedZone) {
    return fmt::format("device memory written {} bytes before an allocation of {} bytes",
                       kRedZone - before, bytes);
  }
  const std::size_t behind = FirstNotPoison(at + bytes, BytesBehind(bytes));
  if (behind < BytesBehind(bytes)) {
    return fmt::format("device memory written {} bytes past the end of an allocation of {} bytes",
                       behind, bytes);
  }
  return {};
}

std::string DeviceMemory::BrokenRedZone(const void* at) const {
  const auto found = live_.find(static_cast<const char*>(at));
  return BrokenRedZone(found->first, found->second);
}

std::string DeviceMemory::BrokenRedZones() const {
  for (const auto& [at, bytes] : live_) {
    std::string broken = BrokenRedZone(at, bytes);
    if (!broken.empty()) return broken;
  }
  return {};
}

std::vector<std::size_t> DeviceMemory::Sizes() const {
  std::vector<std::size_t> sizes;
  for (const auto& [at, bytes] : live_) sizes.push_back(bytes);
  return sizes;
}

}  // namespace emulated_cuda
