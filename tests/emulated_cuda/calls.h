#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "emulated_cuda/emulated_device.h"

namespace emulated_cuda {

// The calls made so far, and the injected faults. Entries are pointers: text is built on demand.
class CallRecord {
 public:
  void Clear();
  void Inject(const Fault& fault) { faults_.push_back(fault); }
  // Returns the call's result if a fault prevents it. `name` is a literal; `kernel` is null except
  // for launches.
  cudaError_t Enter(const char* name, const void* kernel);

  std::size_t size() const { return entries_.size(); }
  std::vector<std::string> Lines() const;
  const char* last_name() const { return entries_.empty() ? "" : entries_.back().name; }

 private:
  struct Entry {
    const char* name;
    const void* kernel;
  };
  static bool Matches(const Fault& fault, const Entry& entry);

  std::vector<Entry> entries_;
  std::vector<Fault> faults_;
};

// One call of the runtime or of cuBLAS; locks the device for its lifetime.
class Call {
 public:
  explicit Call(const char* name, const void* kernel = nullptr);
  // cudaSuccess, or why the call must not do its work.
  cudaError_t error() const { return error_; }

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  cudaError_t error_;
};

}  // namespace emulated_cuda
