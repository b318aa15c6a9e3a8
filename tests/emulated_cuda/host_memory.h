#pragma once

#include <cstddef>
#include <map>

namespace emulated_cuda {

// Host memory that the device may use: allocated here, or the caller's and registered.
class HostMemory {
 public:
  HostMemory() = default;
  ~HostMemory() { Reset(); }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  void Reset();
  // Poisoned memory; null when there is none.
  void* Allocate(std::size_t bytes);
  // Frees `at`; false if it was not allocated here.
  bool Free(void* at);
  // False when a part of the range is registered already.
  bool Register(void* at, std::size_t bytes);
  bool Unregister(void* at);
  bool Contains(const void* at, std::size_t bytes) const;

  std::size_t bytes() const;
  std::size_t count() const { return ranges_.size(); }

 private:
  struct Range {
    std::size_t bytes;
    bool ours;
  };
  bool Remove(void* at, bool ours);

  std::map<const char*, Range> ranges_;
};

}  // namespace emulated_cuda
