#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <absl/status/status.h>

#include "backend/cuda/batch_search.h"
#include "backend/cuda/device.h"
#include "backend/cuda/resident_rows.h"
#include "backend/cuda/workspace.h"

namespace simile::backend::cuda {

// The device and its workspace. One call uses them at a time: a second caller waits. Up to two
// searches may be started and not finished. Outlives its segments. Errors of all methods that use
// the device: kUnavailable once it is lost, else kResourceExhausted for lack of memory,
// kDeadlineExceeded for a batch that was late, and kInternal for a failed call, with CUDA's
// message.
class CudaEngine : public std::enable_shared_from_this<CudaEngine> {
 public:
  // Throws DeviceError.
  CudaEngine(const GpuOptions& options, const BlasLibrary& blas);
  ~CudaEngine();
  CudaEngine(const CudaEngine&) = delete;
  CudaEngine& operator=(const CudaEngine&) = delete;

  Device& device() { return device_; }
  const Device& device() const { return device_; }

  // Whether the kernels have code for this card. Errors: kFailedPrecondition when they have none.
  absl::Status CheckCard();
  // Allocates the largest workspace that fits. Errors: also kResourceExhausted when the smallest
  // one exceeds the memory that may be taken, with the bytes needed and free.
  absl::Status OpenWorkspace();

  // Sets the segment's choices. The store's choices come first. The device measures the missing
  // classes for GpuOptions::choice_time, and stops where a search has to wait.
  // Errors: the device is lost. REQUIRES: no search of these rows has begun.
  absl::Status ChoosePasses(ResidentRows& rows);

  // As SegmentIndex::engine. REQUIRES: no search of these rows has begun.
  const std::string& NameFor(const ResidentRows& rows) const;
  // As SegmentIndex::Search and Score. A result with lent hits keeps the engine alive.
  absl::Status Search(ResidentRows& rows, const SearchBatch& batch, SearchResult& result);
  // A search that the device works on without a thread. Borrows the rows, the batch and the result.
  struct StartedSearch {
    StartedSearch(CudaEngine& engine, Workspace& workspace, ResidentRows& rows);

    const std::uint64_t workspace_number;
    PassRunner runner;
    BatchSearch search;
  };
  using StartedSearchPtr = std::unique_ptr<StartedSearch>;
  // Starts a search (BatchSearch::Start); null where only Search can run it. Another search may be
  // started before this one is finished, and the device works on them in their order.
  StartedSearchPtr Start(ResidentRows& rows, const SearchBatch& batch, SearchResult& result);
  // Whether the device has ended its pass; false, too, while another call uses the device.
  bool HasEnded(const StartedSearch& started);
  // Completes it as Search would have. REQUIRES: what was given to Start.
  absl::Status Finish(StartedSearchPtr started, ResidentRows& rows, const SearchBatch& batch,
                      SearchResult& result);
  // Gives it up, and leaves the result undefined: waits until the device no longer uses its blocks,
  // or leaves that to the next call.
  void Abandon(StartedSearchPtr started);
  absl::Status Score(ResidentRows& rows, MatrixView queries, std::span<const Row> wanted,
                     std::span<float> scores, DeviceTime* device_time);

  // Frees a segment's memory, also during searches of other segments, but not before the device has
  // finished a batch that failed: it may still use the memory.
  // REQUIRES: no search of this one.
  void Free(std::unique_ptr<ResidentRows> rows);

 private:
  //   work  called with the workspace; again with a smaller one where the device's memory ran out
  template <class Work>
  absl::Status WithWorkspace(Work work);
  // REQUIRES: there is a workspace, and the lock is held.
  template <class Work>
  absl::Status RunOnWorkspace(Work& work);
  absl::Status AwaitStreams();
  std::unique_lock<std::mutex> LockForCall();
  void MeasureMissingClasses(ResidentRows& rows, PassChoices& choices);
  //   number  of the workspace
  template <class Work>
  absl::Status TryOnWorkspace(std::uint64_t number, Work work);

  const GpuTuning tuning_;
  const std::chrono::milliseconds choice_time_;
  GpuChoiceStore* const choice_store_;
  const Clock& clock_;
  Device device_;
  const StrategyNames names_;
  std::atomic<unsigned> calls_waiting_{0};  // for mutex_
  std::mutex mutex_;                        // guards all below, and the segments that batches use
  const std::vector<WorkspaceSize> sizes_;  // from the configured one to the smallest
  std::size_t next_size_ = 0;               // of the workspace, or the next to try
  std::uint64_t workspaces_made_ = 0;
  unsigned started_ = 0;  // searches that are not finished
  // A failed batch may still be at work on the device, in buffers of the workspace and the segment.
  std::atomic<bool> failed_batch_may_run_{false};
  std::optional<Workspace> workspace_;
};

}  // namespace simile::backend::cuda
