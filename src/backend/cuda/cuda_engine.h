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

// The device and its workspace. One call at a time uses them; a second caller waits. Up to two
// searches may be started and not finished. Outlives its segments. Errors of all methods that use
// the device, with CUDA's message: kUnavailable once the device is lost; kResourceExhausted for
// lack of memory; kDeadlineExceeded for a late batch; kInternal for a failed call.
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
  // classes for GpuOptions::choice_time, and stops when a search has to wait.
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
  // Starts a search (BatchSearch::Start); null when only Search can run it. Another search may be
  // started before this one is finished; the device runs them in order.
  StartedSearchPtr Start(ResidentRows& rows, const SearchBatch& batch, SearchResult& result);
  // Whether the device has ended its pass; false, too, while another call uses the device.
  bool HasEnded(const StartedSearch& started);
  // Completes a started search, as Search would have. REQUIRES: the same arguments as for Start.
  absl::Status Finish(StartedSearchPtr started, ResidentRows& rows, const SearchBatch& batch,
                      SearchResult& result);
  // Gives a started search up and leaves its result undefined. Waits until the device no longer
  // uses its blocks, or leaves the wait to the next call.
  void Abandon(StartedSearchPtr started);
  absl::Status Score(ResidentRows& rows, MatrixView queries, std::span<const Row> wanted,
                     std::span<float> scores, DeviceTime* device_time);

  // Frees a segment's memory, even during searches of other segments. First waits until the device
  // has finished any failed batch, which may still use the memory.
  // REQUIRES: no search of this segment.
  void Free(std::unique_ptr<ResidentRows> rows);

 private:
  //   work  called with the workspace, and again with a smaller one when the device's memory ran
  //         out
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
  // Whether a failed batch may still run on the device and use buffers of the workspace and the
  // segment.
  std::atomic<bool> failed_batch_may_run_{false};
  std::optional<Workspace> workspace_;
};

}  // namespace simile::backend::cuda
