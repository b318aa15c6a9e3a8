// The runtime's calls for streams and events.

#include <memory>
#include <utility>

#include "emulated_cuda/device_state.h"

using emulated_cuda::Call;
using emulated_cuda::LoseDevice;
using emulated_cuda::Operation;
using emulated_cuda::RefuseOnCapturing;
using emulated_cuda::SetLast;
using emulated_cuda::State;

namespace {

bool IsDone(const CUevent_st& event) {
  return event.completion == nullptr || event.completion->done;
}

cudaError_t CreateStream(const Call& call, cudaStream_t* stream, unsigned flags) {
  if (call.error() != cudaSuccess) return call.error();
  *stream = State().streams.Create((flags & cudaStreamNonBlocking) == 0);
  return cudaSuccess;
}

cudaError_t CreateEvent(const Call& call, cudaEvent_t* event) {
  if (call.error() != cudaSuccess) return call.error();
  *event = State().events.Add(std::make_unique<CUevent_st>());
  return cudaSuccess;
}

cudaError_t Record(cudaEvent_t event, cudaStream_t stream) {
  event->capture = stream->capture;
  event->tail = stream->tail;
  if (stream->capture == nullptr) event->completion = State().streams.QueueOperation(stream, {});
  return cudaSuccess;
}

// A stream that waits for an event of a capture joins it.
cudaError_t JoinCapture(CUstream_st& stream, const CUevent_st& event) {
  if (event.capture->ended) return SetLast(cudaErrorStreamCaptureIsolation);
  if (stream.capture == nullptr) {
    stream.capture = event.capture;
    stream.tail = event.tail;
    return cudaSuccess;
  }
  if (stream.capture != event.capture) {
    stream.capture->invalid = event.capture->invalid = true;
    return SetLast(cudaErrorStreamCaptureMerge);
  }
  stream.tail.insert(stream.tail.end(), event.tail.begin(), event.tail.end());
  return cudaSuccess;
}

}  // namespace

extern "C" {

// NOLINTBEGIN: these names are CUDA's, not ours.

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  const Call call(__func__);
  return CreateStream(call, stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const Call call(__func__);
  return CreateStream(call, stream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int /*priority*/) {
  const Call call(__func__);
  return CreateStream(call, stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Call call(__func__);
  const bool known = State().streams.Destroy(stream);
  if (call.error() != cudaSuccess) return call.error();
  return SetLast(known ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  const cudaStream_t found = State().streams.Find(stream);
  if (found == nullptr) return SetLast(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = RefuseOnCapturing(found); error != cudaSuccess) return error;
  return State().streams.Drain(found);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  const cudaStream_t found = State().streams.Find(stream);
  if (found == nullptr) return SetLast(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = RefuseOnCapturing(found); error != cudaSuccess) return error;
  if (found->queue.empty()) return cudaSuccess;
  State().streams.Poll(found);
  if (State().lost != cudaSuccess) return SetLast(State().lost);
  return found->queue.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  const cudaStream_t found = State().streams.Find(stream);
  if (found == nullptr || !State().events.Contains(event)) {
    return SetLast(cudaErrorInvalidResourceHandle);
  }
  if (event->capture != nullptr) return JoinCapture(*found, *event);
  if (found->capture != nullptr) {
    found->capture->invalid = true;
    return SetLast(cudaErrorStreamCaptureIsolation);
  }
  Operation operation;
  if (event->completion != nullptr) operation.after.push_back(event->completion);
  State().streams.QueueOperation(found, std::move(operation));
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  const cudaStream_t found = State().streams.Find(stream);
  if (found == nullptr) return SetLast(cudaErrorInvalidResourceHandle);
  return State().streams.Queue(found, [function, data] { function(data); });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  const Call call(__func__);
  return CreateEvent(call, event);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  const Call call(__func__);
  return CreateEvent(call, event);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Call call(__func__);
  const bool known = State().events.Remove(event);
  if (call.error() != cudaSuccess) return call.error();
  return SetLast(known ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  const cudaStream_t found = State().streams.Find(stream);
  if (found == nullptr || !State().events.Contains(event)) {
    return SetLast(cudaErrorInvalidResourceHandle);
  }
  return Record(event, found);
}

// An external event becomes a node of the graph, which records it whenever the graph runs.
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  const cudaStream_t found = State().streams.Find(stream);
  if (found == nullptr || !State().events.Contains(event)) {
    return SetLast(cudaErrorInvalidResourceHandle);
  }
  if (flags == cudaEventRecordDefault) return Record(event, found);
  if (flags != cudaEventRecordExternal || found->capture == nullptr) {
    return SetLast(cudaErrorInvalidValue);
  }
  return State().streams.Queue(found, [event] {
    if (!State().events.Contains(event)) return LoseDevice(cudaErrorIllegalAddress);
    event->capture = nullptr;
    event->completion = State().streams.CompletedNow();
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (!State().events.Contains(event)) return SetLast(cudaErrorInvalidResourceHandle);
  if (event->capture != nullptr) return SetLast(cudaErrorCapturedEvent);
  return State().streams.RunUntil(nullptr, [event] { return IsDone(*event); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (!State().events.Contains(event)) return SetLast(cudaErrorInvalidResourceHandle);
  if (event->capture != nullptr) return SetLast(cudaErrorCapturedEvent);
  if (IsDone(*event)) return cudaSuccess;
  State().streams.Poll(nullptr);
  if (State().lost != cudaSuccess) return SetLast(State().lost);
  return IsDone(*event) ? cudaSuccess : cudaErrorNotReady;
}

// Not a clock: counts one microsecond per piece of work between the two.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  const auto& events = State().events;
  if (!events.Contains(start) || !events.Contains(end) || start->completion == nullptr ||
      end->completion == nullptr) {
    return SetLast(cudaErrorInvalidResourceHandle);
  }
  if (!IsDone(*start) || !IsDone(*end)) return SetLast(cudaErrorNotReady);
  *milliseconds = 1e-3F * static_cast<float>(end->completion->tick - start->completion->tick);
  return cudaSuccess;
}

// NOLINTEND
}
