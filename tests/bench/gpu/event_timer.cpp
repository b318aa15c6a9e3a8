#include "bench/gpu/event_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "bench/timing.h"

namespace simile::bench::gpu {
namespace {

using backend::cuda::Device;
using backend::cuda::Graph;

constexpr double kSampleUs = 1'000;
constexpr unsigned kRunsMax = 64;
constexpr std::size_t kSamplesMin = 3;
constexpr std::size_t kSamplesMax = 25;
constexpr std::chrono::nanoseconds kBudget = std::chrono::milliseconds(250);

backend::cuda::GraphExec CaptureAfterOneRun(Device& device, cudaStream_t stream,
                                            const std::function<void()>& enqueue) {
  enqueue();
  device.AwaitOrLose(stream);
  return backend::cuda::Capture(device, stream, enqueue);
}

// Calls sample() until there are enough samples or the time is over.
template <class Sample>
Spread Collect(std::chrono::nanoseconds budget, Sample sample) {
  const auto began = std::chrono::steady_clock::now();
  std::vector<double> samples;
  while (samples.size() < kSamplesMax &&
         (samples.size() < kSamplesMin || std::chrono::steady_clock::now() - began < budget)) {
    samples.push_back(sample());
  }
  return SpreadOf(samples);
}

}  // namespace

Spread SpreadOf(const std::vector<double>& samples_us) {
  return {Median(samples_us), std::ranges::min(samples_us), std::ranges::max(samples_us),
          samples_us.size()};
}

TimedWork::TimedWork(Device& device, cudaStream_t stream, const std::function<void()>& enqueue)
    : device_(device),
      stream_(stream),
      begin_(MakeTimingEvent(device)),
      end_(MakeTimingEvent(device)),
      exec_(CaptureAfterOneRun(device, stream, enqueue)) {}

double TimedWork::Sample(unsigned runs) const {
  device_.Check(cudaEventRecord(begin_.get(), stream_), "cudaEventRecord");
  for (unsigned i = 0; i < runs; ++i) {
    device_.Check(cudaGraphLaunch(exec_.get(), stream_), "cudaGraphLaunch");
  }
  device_.Check(cudaEventRecord(end_.get(), stream_), "cudaEventRecord");
  device_.AwaitOrLose(stream_);
  float milliseconds = 0;
  device_.Check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()),
                "cudaEventElapsedTime");
  return 1e3 * static_cast<double>(milliseconds) / runs;
}

unsigned TimedWork::RunsOfSample() const {
  constexpr unsigned kTries = 3;
  Sample(1);
  // The host's clock, which also counts a launch, so that a slow host does not run out of time.
  const auto began = std::chrono::steady_clock::now();
  Sample(kTries);
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - began;
  const double once_us = std::max(taken.count() / kTries, 1.0);
  return static_cast<unsigned>(std::clamp(std::ceil(kSampleUs / once_us), 1.0, double{kRunsMax}));
}

Spread TimedWork::Time(std::size_t parts) const {
  const unsigned runs = RunsOfSample();
  return Collect(kBudget / parts, [&] { return Sample(runs); });
}

}  // namespace simile::bench::gpu
