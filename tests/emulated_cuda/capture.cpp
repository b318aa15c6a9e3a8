#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "emulated_cuda/device_state.h"

namespace emulated_cuda {
namespace {

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

cudaError_t Spoil(Capture& capture, cudaError_t error) {
  capture.invalid = true;
  return SetLast(error);
}

// A capture forbids unsafe calls to its own thread unless it is relaxed, and to all other threads
// if it is global; a thread may opt out, of the second or of both.
bool Forbids(const Capture& capture) {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return false;
  if (capture.thread == std::this_thread::get_id()) {
    return capture.mode != cudaStreamCaptureModeRelaxed;
  }
  return capture.mode == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal;
}

// Whether every node is in `tail` or a predecessor of one in it.
bool IsJoined(const std::vector<GraphNode>& nodes, std::vector<std::size_t> tail) {
  std::vector<char> seen(nodes.size(), 0);
  while (!tail.empty()) {
    const std::size_t node = tail.back();
    tail.pop_back();
    if (std::exchange(seen[node], 1) != 0) continue;
    tail.insert(tail.end(), nodes[node].after.begin(), nodes[node].after.end());
  }
  return std::all_of(seen.begin(), seen.end(), [](char node) { return node != 0; });
}

// Ends the capture on all its streams and returns its outcome.
cudaError_t EndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  DeviceState& state = State();
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return cudaErrorInvalidValue;
  if (capture->origin != stream) {
    capture->invalid = true;
    return cudaErrorStreamCaptureUnmatched;
  }
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id()) {
    return cudaErrorStreamCaptureWrongThread;
  }
  capture->ended = true;
  const bool joined = IsJoined(capture->nodes, stream->tail);
  for (const auto& other : state.streams.all()) {
    if (other->capture != capture) continue;
    other->capture = nullptr;
    other->tail.clear();
  }
  if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (!joined) return cudaErrorStreamCaptureUnjoined;
  auto made = std::make_unique<CUgraph_st>();
  made->nodes = std::make_shared<const std::vector<GraphNode>>(std::move(capture->nodes));
  *graph = state.graphs.Add(std::move(made));
  return cudaSuccess;
}

}  // namespace

cudaError_t RefuseWhileCapturing() {
  cudaError_t error = cudaSuccess;
  for (const auto& stream : State().streams.all()) {
    if (stream->capture != nullptr && Forbids(*stream->capture)) {
      error = Spoil(*stream->capture, cudaErrorStreamCaptureUnsupported);
    }
  }
  return error;
}

cudaError_t RefuseOnCapturing(cudaStream_t stream) {
  if (stream->capture == nullptr) return cudaSuccess;
  return Spoil(*stream->capture, cudaErrorStreamCaptureUnsupported);
}

cudaError_t RefuseDefaultStream(cudaStream_t stream) {
  Streams& streams = State().streams;
  if (stream != streams.Find(nullptr)) return cudaSuccess;
  cudaError_t error = cudaSuccess;
  for (const auto& other : streams.all()) {
    if (other->capture != nullptr && other->blocking) {
      error = Spoil(*other->capture, cudaErrorStreamCaptureImplicit);
    }
  }
  return error;
}

}  // namespace emulated_cuda

using emulated_cuda::Call;
using emulated_cuda::Capture;
using emulated_cuda::Operation;
using emulated_cuda::SetLast;
using emulated_cuda::State;
using emulated_cuda::thread_mode;

extern "C" {

// NOLINTBEGIN: these names are CUDA's, not ours.

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  const cudaStream_t found = stream == nullptr ? nullptr : State().streams.Find(stream);
  if (stream == nullptr) return SetLast(cudaErrorStreamCaptureUnsupported);
  if (found == nullptr) return SetLast(cudaErrorInvalidResourceHandle);
  if (found->capture != nullptr) return SetLast(cudaErrorInvalidValue);
  found->capture = std::make_shared<Capture>();
  found->capture->origin = found;
  found->capture->mode = mode;
  found->capture->thread = std::this_thread::get_id();
  found->tail.clear();
  return cudaSuccess;
}

// An injected failure ends the capture without a graph, as an invalidated capture does.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Call call(__func__);
  const cudaStream_t found = stream == nullptr ? nullptr : State().streams.Find(stream);
  if (found == nullptr) {
    return SetLast(call.error() != cudaSuccess ? call.error() : cudaErrorInvalidResourceHandle);
  }
  if (call.error() != cudaSuccess && found->capture != nullptr) found->capture->invalid = true;
  const cudaError_t error = emulated_cuda::EndCapture(found, graph);
  return SetLast(call.error() != cudaSuccess ? call.error() : error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  const cudaStream_t found = State().streams.Find(stream);
  if (found == nullptr) return SetLast(cudaErrorInvalidResourceHandle);
  *status = found->capture == nullptr ? cudaStreamCaptureStatusNone
            : found->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                      : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (!State().graphs.Contains(graph)) return SetLast(cudaErrorInvalidValue);
  auto made = std::make_unique<CUgraphExec_st>();
  made->nodes = graph->nodes;
  *exec = State().graph_execs.Add(std::move(made));
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  const bool known = State().graph_execs.Contains(exec);
  if (!known || State().streams.Find(stream) == nullptr) return SetLast(cudaErrorInvalidValue);
  return cudaSuccess;
}

// Not into another capture: the project has no graphs in graphs.
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  auto& state = State();
  const cudaStream_t found = state.streams.Find(stream);
  if (found == nullptr) return SetLast(cudaErrorInvalidResourceHandle);
  if (!state.graph_execs.Contains(exec)) return SetLast(cudaErrorInvalidValue);
  if (found->capture != nullptr) return SetLast(cudaErrorNotSupported);
  if (state.next_work_fails != cudaSuccess) return state.streams.Queue(found, nullptr);
  Operation operation;
  operation.graph = exec->nodes;
  operation.nodes_left = exec->nodes->size();
  if (exec->last != nullptr) operation.after.push_back(exec->last);
  exec->last = state.streams.QueueOperation(found, std::move(operation));
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Call call(__func__);
  const bool known = State().graphs.Remove(graph);
  if (call.error() != cudaSuccess) return call.error();
  return SetLast(known ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  const Call call(__func__);
  const bool known = State().graph_execs.Remove(exec);
  if (call.error() != cudaSuccess) return call.error();
  return SetLast(known ? cudaSuccess : cudaErrorInvalidValue);
}

// NOLINTEND
}
