#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace emulated_cuda {

using Work = std::function<void()>;

// Whether some queued work is done. Shared by the queue and by the events that wait for it.
struct Completion {
  bool done = false;
  std::uint64_t tick = 0;
};
using CompletionPtr = std::shared_ptr<Completion>;

// One captured call, and the nodes whose work it saw before it.
struct GraphNode {
  Work work;
  std::vector<std::size_t> after;
};
using GraphNodes = std::shared_ptr<const std::vector<GraphNode>>;

// An active capture, shared by its streams.
struct Capture {
  std::vector<GraphNode> nodes;
  cudaStream_t origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool invalid = false;
  bool ended = false;
};

// An entry of a stream's queue: plain work, a graph, or only a point to wait for.
struct Operation {
  Work work;
  GraphNodes graph;
  std::vector<char> nodes_done;
  std::size_t nodes_left = 0;
  std::vector<CompletionPtr> after;
  CompletionPtr completion;
};

}  // namespace emulated_cuda

// CUDA's names for what its handles point to.
// NOLINTBEGIN
struct CUstream_st {
  bool blocking = true;  // waits for the default stream, and it for this one
  std::deque<emulated_cuda::Operation> queue;
  emulated_cuda::CompletionPtr last;  // of what was queued last
  std::shared_ptr<emulated_cuda::Capture> capture;
  std::vector<std::size_t> tail;  // nodes of the capture that the next one comes after
};
struct CUevent_st {
  emulated_cuda::CompletionPtr completion;          // null before the first record
  std::shared_ptr<emulated_cuda::Capture> capture;  // when recorded into one
  std::vector<std::size_t> tail;
};
struct CUgraph_st {
  emulated_cuda::GraphNodes nodes;
};
struct CUgraphExec_st {
  emulated_cuda::GraphNodes nodes;
  emulated_cuda::CompletionPtr last;  // a graph runs once at a time
};
// NOLINTEND

namespace emulated_cuda {

// All streams and their queued work, which runs only while the host waits or polls, in any order
// that streams and events allow, so that a missing wait always reads old data.
class Streams {
 public:
  Streams();
  void Reset();

  cudaStream_t Create(bool blocking);
  // Removes the handle; its queued work still runs.
  bool Destroy(cudaStream_t stream);
  // The stream of a handle, the default one for null; null for an invalid handle.
  cudaStream_t Find(cudaStream_t handle);
  std::size_t count() const { return streams_.size(); }
  const std::vector<std::shared_ptr<CUstream_st>>& all() const { return streams_; }

  // Queues or captures. The stream is one that Find returned.
  cudaError_t Queue(cudaStream_t stream, Work work);
  CompletionPtr QueueOperation(cudaStream_t stream, Operation operation);

  // What an event holds that the device has just reached.
  CompletionPtr CompletedNow();

  // Runs one piece of work; false when none can run.
  bool RunOne(cudaStream_t preferred);
  // Runs until it is done. Ends the process when the device hangs.
  cudaError_t RunUntil(cudaStream_t preferred, const std::function<bool()>& done);
  cudaError_t Drain(cudaStream_t stream);
  cudaError_t DrainAll();
  // Lets the device make progress while the host polls.
  void Poll(cudaStream_t preferred);

 private:
  static bool IsRunnable(const CUstream_st& stream);
  bool IsIdle() const;
  void RunFront(CUstream_st& stream);
  void RunNode(Operation& operation);

  std::shared_ptr<CUstream_st> default_stream_;
  std::vector<std::shared_ptr<CUstream_st>> streams_;
  std::vector<std::shared_ptr<CUstream_st>> orphans_;  // destroyed with work left
  std::uint64_t tick_ = 0;  // pieces of work done, nodes of graphs included
};

// Capture's rules: cudaSuccess, or the error of a call that breaks them; such a call invalidates
// the capture.
//   for calls that are forbidden while this or another thread captures
cudaError_t RefuseWhileCapturing();
//   for calls that query a stream or wait for it
cudaError_t RefuseOnCapturing(cudaStream_t stream);
//   for work on the default stream, which a capturing stream would have to wait for
cudaError_t RefuseDefaultStream(cudaStream_t stream);

}  // namespace emulated_cuda
