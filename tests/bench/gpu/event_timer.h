#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "backend/cuda/device_memory.h"

namespace simile::bench::gpu {

// Times of one run of some work, over many samples.
struct Spread {
  double median_us = 0;
  double min_us = 0;
  double max_us = 0;
  std::size_t samples = 0;
};
Spread SpreadOf(const std::vector<double>& samples_us);

// Work on the device, captured once as a graph, so that a run costs the host one call. Borrows the
// device. All methods throw DeviceError.
class TimedWork {
 public:
  //   enqueue  puts the work into the stream, and into others that fork from it and join it again.
  //            Called twice: CUDA and cuBLAS load code at its first launch, which a capture does
  //            not allow, so the work runs once before it is captured.
  TimedWork(backend::cuda::Device& device, cudaStream_t stream,
            const std::function<void()>& enqueue);

  // Times consecutive runs between two events of the device, enough of them that the cost of an
  // event is negligible. The first ones warm caches and are not counted.
  //   parts  of the whole that is timed: each takes that share of the time for one
  Spread Time(std::size_t parts = 1) const;

 private:
  double Sample(unsigned runs) const;
  // Runs of a sample that takes about a millisecond.
  unsigned RunsOfSample() const;

  backend::cuda::Device& device_;
  const cudaStream_t stream_;
  backend::cuda::Event begin_, end_;
  backend::cuda::GraphExec exec_;
};

}  // namespace simile::bench::gpu
