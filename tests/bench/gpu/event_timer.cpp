#include "bench/gpu/event_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "bench/timing.h"

namespace simile::bench::gpu {
namespace {

using backend::cuda::Device;
using backend::cuda::Event;
using backend::cuda::Graph;

constexpr double kSampleUs = 1'000;
constexpr unsigned kTurnsMax = 64;
constexpr std::size_t kSamplesMin = 5;
constexpr std::size_t kSamplesMax = 25;
constexpr auto kBudget = std::chrono::milliseconds(250);

Event MakeTimingEvent(Device& device) {
  cudaEvent_t event = nullptr;
  device.Check(cudaEventCreate(&event), "cudaEventCreate");
  return {device, event};
}

// Calls sample() until there are enough, or enough time has gone by.
template <class Sample>
Spread Collect(Sample sample) {
  const auto began = std::chrono::steady_clock::now();
  std::vector<double> samples;
  while (samples.size() < kSamplesMax &&
         (samples.size() < kSamplesMin || std::chrono::steady_clock::now() - began < kBudget)) {
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
      exec_(backend::cuda::Capture(device, stream, enqueue)) {}

void TimedWork::Run() const {
  device_.Check(cudaGraphLaunch(exec_.get(), stream_), "cudaGraphLaunch");
  device_.Await(stream_);
}

double TimedWork::Sample(unsigned turns) const {
  device_.Check(cudaEventRecord(begin_.get(), stream_), "cudaEventRecord");
  for (unsigned i = 0; i < turns; ++i) {
    device_.Check(cudaGraphLaunch(exec_.get(), stream_), "cudaGraphLaunch");
  }
  device_.Check(cudaEventRecord(end_.get(), stream_), "cudaEventRecord");
  device_.Await(stream_);
  float milliseconds = 0;
  device_.Check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()),
                "cudaEventElapsedTime");
  return 1e3 * static_cast<double>(milliseconds) / turns;
}

unsigned TimedWork::TurnsOfSample() const {
  Sample(1);
  const double once_us = std::max(Sample(3), 1.0);
  return static_cast<unsigned>(std::clamp(std::ceil(kSampleUs / once_us), 1.0, double{kTurnsMax}));
}

Spread TimedWork::Time() const {
  const unsigned turns = TurnsOfSample();
  return Collect([&] { return Sample(turns); });
}

Spread TimeBeyond(const TimedWork& whole, const TimedWork& part) {
  const unsigned turns = whole.TurnsOfSample();
  part.Sample(turns);
  return Collect([&] { return whole.Sample(turns) - part.Sample(turns); });
}

}  // namespace simile::bench::gpu
