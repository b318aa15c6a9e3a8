#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include <absl/status/status.h>

#include "simile/backend.h"

namespace simile::testing {

// What a plug-in answers when something goes wrong, as src/backend/failover_backend.h expects it.
absl::Status GpuFull();    // no room on the device
absl::Status GpuFailed();  // one call failed: cudaErrorInvalidValue, 1
absl::Status GpuLost();    // the device is gone for good: cudaErrorIllegalAddress, 700

// Tells a fake GPU what its next calls come to, and what it was asked. Once a call has come to
// GpuLost all do, as in a real plug-in. Safe to use from any thread.
class FakeGpuControl {
 public:
  enum class Call : std::uint8_t { kLoad, kSearch, kScore };

  // The next such call after those already spoken for comes to this; OK is one that goes well.
  void Next(Call call, absl::Status outcome);
  // The same for the words of a list: "ok,full,failed,lost".
  void NextOf(Call call, std::string_view words);

  // As it was in the beginning.
  void Reset();

  // Of the fake: what this call comes to.
  absl::Status Take(Call call);

  int calls(Call call) const;
  int calls_after_loss() const;

 private:
  mutable std::mutex mutex_;  // guards all of it
  std::map<Call, std::deque<absl::Status>> next_;
  std::map<Call, int> calls_;
  bool lost_ = false;
  int calls_after_loss_ = 0;
};

// A "GPU" that scores every row by the reference, with the memory of one: "NVIDIA H200", engine
// "cuda-fake".
//   control  borrowed for the life of the backend and its segments
std::unique_ptr<Backend> MakeFakeGpu(FakeGpuControl& control);

}  // namespace simile::testing
