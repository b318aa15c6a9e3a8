#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "backend/cuda/device_memory.h"

namespace simile::bench::gpu {

// Times of one turn of some work, over many samples.
struct Spread {
  double median_us = 0;
  double min_us = 0;
  double max_us = 0;
  std::size_t samples = 0;
};
Spread SpreadOf(const std::vector<double>& samples_us);

// Work on the device, captured once as a graph, so that a turn costs the host one call. Borrows the
// device. All throw DeviceError.
class TimedWork {
 public:
  //   enqueue  puts the work into the stream, and into others that fork from it and join it again;
  //            called once, and nothing of it runs then
  TimedWork(backend::cuda::Device& device, cudaStream_t stream,
            const std::function<void()>& enqueue);

  // One turn; returns when it is done.
  void Run() const;

  // Turns, one behind the other, between two events of the device: enough of them that what an
  // event costs is lost in the sum. The first ones, which warm caches, are not counted.
  Spread Time() const;

 private:
  friend Spread TimeBeyond(const TimedWork& whole, const TimedWork& part);

  double Sample(unsigned turns) const;
  // Turns of a sample that takes about a millisecond.
  unsigned TurnsOfSample() const;

  backend::cuda::Device& device_;
  const cudaStream_t stream_;
  backend::cuda::Event begin_, end_;
  backend::cuda::GraphExec exec_;
};

// What the whole takes beyond a part of it: for work that needs a preparation before each turn. The
// two take turns, so that clocks that drift meet both.
Spread TimeBeyond(const TimedWork& whole, const TimedWork& part);

}  // namespace simile::bench::gpu
