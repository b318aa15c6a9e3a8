#include "emulated_cuda/streams.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "emulated_cuda/device_state.h"

namespace emulated_cuda {
namespace {

bool IsDone(const CompletionPtr& completion) { return completion == nullptr || completion->done; }

}  // namespace

Streams::Streams() { Reset(); }

void Streams::Reset() {
  default_stream_ = std::make_shared<CUstream_st>();
  streams_.clear();
  orphans_.clear();
}

cudaStream_t Streams::Create(bool blocking) {
  streams_.push_back(std::make_shared<CUstream_st>());
  streams_.back()->blocking = blocking;
  return streams_.back().get();
}

bool Streams::Destroy(cudaStream_t stream) {
  const auto found =
      std::find_if(streams_.begin(), streams_.end(),
                   [stream](const auto& candidate) { return candidate.get() == stream; });
  if (found == streams_.end()) return false;
  if (stream->capture != nullptr) stream->capture->invalid = true;
  if (!stream->queue.empty()) orphans_.push_back(*found);
  streams_.erase(found);
  return true;
}

cudaStream_t Streams::Find(cudaStream_t handle) {
  if (handle == nullptr) return default_stream_.get();
  for (const auto& stream : streams_) {
    if (stream.get() == handle) return handle;
  }
  return nullptr;
}

cudaError_t Streams::Queue(cudaStream_t stream, Work work) {
  if (const cudaError_t error = RefuseDefaultStream(stream); error != cudaSuccess) return error;
  DeviceState& state = State();
  if (state.next_work_fails != cudaSuccess) {
    work = [error = state.next_work_fails] { LoseDevice(error); };
    state.next_work_fails = cudaSuccess;
  }
  if (stream->capture != nullptr) {
    std::vector<GraphNode>& nodes = stream->capture->nodes;
    nodes.push_back({std::move(work), std::exchange(stream->tail, {nodes.size()})});
    return cudaSuccess;
  }
  Operation operation;
  operation.work = std::move(work);
  QueueOperation(stream, std::move(operation));
  return cudaSuccess;
}

CompletionPtr Streams::QueueOperation(cudaStream_t stream, Operation operation) {
  const auto wait_for = [&operation](const CUstream_st& other) {
    if (!IsDone(other.last)) operation.after.push_back(other.last);
  };
  if (stream == default_stream_.get()) {
    for (const auto& other : streams_) {
      if (other->blocking) wait_for(*other);
    }
    for (const auto& other : orphans_) {
      if (other->blocking) wait_for(*other);
    }
  } else if (stream->blocking) {
    wait_for(*default_stream_);
  }
  operation.completion = std::make_shared<Completion>();
  stream->last = operation.completion;
  stream->queue.push_back(std::move(operation));
  return stream->last;
}

CompletionPtr Streams::CompletedNow() {
  auto completion = std::make_shared<Completion>();
  *completion = {true, ++tick_};
  return completion;
}

bool Streams::IsRunnable(const CUstream_st& stream) {
  if (stream.queue.empty()) return false;
  const Operation& front = stream.queue.front();
  return std::all_of(front.after.begin(), front.after.end(), IsDone);
}

bool Streams::RunOne(cudaStream_t preferred) {
  DeviceState& state = State();
  if (state.hangs) return false;
  std::vector<CUstream_st*> runnable;
  if (IsRunnable(*default_stream_)) runnable.push_back(default_stream_.get());
  for (const auto* list : {&streams_, &orphans_}) {
    for (const auto& stream : *list) {
      if (IsRunnable(*stream)) runnable.push_back(stream.get());
    }
  }
  if (runnable.empty()) return false;
  CUstream_st* stream = runnable[0];
  if (state.options.seed != 0) {
    stream = runnable[state.random.Below(runnable.size())];
  } else if (std::find(runnable.begin(), runnable.end(), preferred) != runnable.end()) {
    stream = preferred;
  }
  RunFront(*stream);
  return true;
}

void Streams::RunFront(CUstream_st& stream) {
  Operation& front = stream.queue.front();
  const bool lost = State().lost != cudaSuccess;
  if (front.graph != nullptr && front.nodes_left > 0 && !lost) {
    RunNode(front);
    if (front.nodes_left > 0) return;
  } else if (front.work != nullptr && !lost) {
    front.work();
  }
  front.completion->done = true;
  front.completion->tick = ++tick_;
  stream.queue.pop_front();
  if (!stream.queue.empty()) return;
  const auto orphan = std::find_if(orphans_.begin(), orphans_.end(),
                                   [&](const auto& other) { return other.get() == &stream; });
  if (orphan != orphans_.end()) orphans_.erase(orphan);
}

// A node whose predecessors have run: a random one under a seed, else the one captured first.
void Streams::RunNode(Operation& operation) {
  const std::vector<GraphNode>& nodes = *operation.graph;
  operation.nodes_done.resize(nodes.size(), 0);
  std::vector<std::size_t> runnable;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto is_done = [&](std::size_t node) { return operation.nodes_done[node] != 0; };
    if (!is_done(i) && std::all_of(nodes[i].after.begin(), nodes[i].after.end(), is_done)) {
      runnable.push_back(i);
    }
  }
  DeviceState& state = State();
  const std::size_t pick = state.options.seed == 0 ? 0 : state.random.Below(runnable.size());
  const std::size_t node = runnable[pick];
  operation.nodes_done[node] = 1;
  --operation.nodes_left;
  nodes[node].work();
  ++tick_;
}

cudaError_t Streams::RunUntil(cudaStream_t preferred, const std::function<bool()>& done) {
  DeviceState& state = State();
  if (!done()) {
    const DeviceMemory::Access access(state.memory);
    while (!done()) {
      if (state.hangs) {
        std::fprintf(stderr, "emulated_cuda: %s would wait for ever: the device hangs\n",
                     state.calls.last_name());
        std::abort();
      }
      if (!RunOne(preferred)) {
        Report("streams wait for each other's events in a cycle");
        LoseDevice(cudaErrorLaunchTimeout);
        break;
      }
    }
  }
  return SetLast(state.lost);
}

cudaError_t Streams::Drain(cudaStream_t stream) {
  return RunUntil(stream, [stream] { return stream->queue.empty(); });
}

bool Streams::IsIdle() const {
  const auto is_empty = [](const auto& stream) { return stream->queue.empty(); };
  return orphans_.empty() && default_stream_->queue.empty() &&
         std::all_of(streams_.begin(), streams_.end(), is_empty);
}

cudaError_t Streams::DrainAll() {
  return RunUntil(nullptr, [this] { return IsIdle(); });
}

void Streams::Poll(cudaStream_t preferred) {
  if (IsIdle()) return;
  const DeviceMemory::Access access(State().memory);
  RunOne(preferred);
}

}  // namespace emulated_cuda
