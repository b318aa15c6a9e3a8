#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>

namespace emulated_cuda {

// The live handles of one kind; detects invalid ones.
template <class T>
class HandleSet {
 public:
  T* Add(std::unique_ptr<T> handle) {
    T* const plain = handle.get();
    handles_[plain] = std::move(handle);
    return plain;
  }
  bool Contains(T* handle) const { return handles_.count(handle) != 0; }
  bool Remove(T* handle) { return handles_.erase(handle) != 0; }
  void Clear() { handles_.clear(); }
  std::size_t size() const { return handles_.size(); }

 private:
  std::unordered_map<T*, std::unique_ptr<T>> handles_;
};

}  // namespace emulated_cuda
