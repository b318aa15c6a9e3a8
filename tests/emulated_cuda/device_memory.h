#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace emulated_cuda {

// The device's memory: one address range that the host can access only while the device works.
// Every allocation starts as poison, between red zones of poison.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Frees everything and reserves this many bytes.
  void Reset(std::size_t bytes);
  std::size_t bytes() const { return bytes_; }
  std::size_t free_bytes() const { return bytes_ - used_; }

  // Null when it does not fit. First fit, so that freed addresses are reused soon.
  void* Allocate(std::size_t bytes);
  bool IsAllocation(const void* at) const;
  // REQUIRES: IsAllocation(at). Leaves the memory poisoned.
  void Free(void* at);

  bool Contains(const void* at) const { return at >= arena_ && at < arena_ + arena_bytes_; }
  // Whether a range lies within one live allocation.
  bool IsLive(const void* at, std::size_t bytes) const;
  // The damage of the red zones, or empty.
  std::string BrokenRedZones() const;
  std::string BrokenRedZone(const void* at) const;
  std::vector<std::size_t> Sizes() const;

  // While one of these lives, memory can be read and written.
  class Access {
   public:
    explicit Access(DeviceMemory& memory);
    ~Access();
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    DeviceMemory& memory_;
  };

 private:
  void Protect(bool readable) const;
  std::string BrokenRedZone(const char* at, std::size_t bytes) const;

  char* arena_ = nullptr;
  std::size_t arena_bytes_ = 0;
  std::size_t bytes_ = 0, used_ = 0;
  std::size_t touched_bytes_ = 0;  // ever used, from the arena's begin
  int access_count_ = 0;
  std::map<const char*, std::size_t> live_;
};

}  // namespace emulated_cuda
