#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include <absl/status/status.h>

#include "simile/backend.h"

namespace simile::tests {

// The errors of a plug-in, as src/backend/failover_backend.h expects them.
absl::Status GpuFull();    // the device has no memory left
absl::Status GpuFailed();  // one call failed: cudaErrorInvalidValue, 1
absl::Status GpuLate();    // the batch was not finished in time
absl::Status GpuLost();    // the device is lost: cudaErrorIllegalAddress, 700
// A search that succeeds with a wrong answer.
absl::Status GpuWrong();

// Sets the outcomes of a fake GPU's next calls and counts its calls. After one GpuLost every call
// returns GpuLost, as in a real plug-in. Thread-safe.
class FakeGpuControl {
 public:
  enum class Call : std::uint8_t { kLoad, kSearch, kScore };

  // Appends the outcome of one more call of this type; calls beyond the list succeed.
  void Next(Call call, absl::Status outcome);
  // Appends one outcome for each word of a list: "ok,full,failed,late,lost,wrong".
  void ParseNext(Call call, std::string_view words);

  // Every call of this type waits, until Release.
  void Hold(Call call);
  void AwaitHeld();  // until a call waits
  void Release();

  // Forgets all outcomes and counts, and releases what waits.
  void Reset();

  // Called by the fake: counts the call and returns its outcome. Waits while the type is held.
  absl::Status NextOutcome(Call call);

  int calls(Call call) const;
  int calls_after_loss() const;

 private:
  mutable std::mutex mutex_;  // guards all of it
  std::condition_variable changed_;
  std::set<Call> held_;
  int waiting_ = 0;  // calls that wait
  std::map<Call, std::deque<absl::Status>> next_;
  std::map<Call, int> calls_;
  bool lost_ = false;
  int calls_after_loss_ = 0;
};

// Makes a backend "NVIDIA H200" with the engine "cuda-fake", which scores every row with the
// reference and counts device memory as a GPU would.
//   control     borrowed for the lifetime of the backend and its segments
//   limitation  of the backend
std::unique_ptr<Backend> MakeFakeGpu(FakeGpuControl& control, std::string limitation = {});

}  // namespace simile::tests
