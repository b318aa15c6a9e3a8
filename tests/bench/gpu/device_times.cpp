#include "bench/gpu/device_times.h"

#include <algorithm>

#include "bench/gpu/query_specs.h"

namespace simile::bench::gpu {
namespace {

using backend::cuda::PassRunner;

void Add(const Spread& part, Spread& sum) {
  sum.median_us += part.median_us;
  sum.min_us += part.min_us;
  sum.max_us += part.max_us;
  sum.samples = part.samples;
}

void TakeAnswers(const PassRunner& runner, std::size_t count, DeviceTime& time) {
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Hit>& answer = time.answers.emplace_back();
    if (runner.ProofOf(i).flag == kernels::kProven) {
      const std::span<const Hit> hits = runner.Answer(i);
      answer.assign(hits.begin(), hits.end());
    } else {
      ++time.unproven;
    }
  }
}

}  // namespace

DeviceTime TimePasses(backend::cuda::Device& device, PassRunner& runner,
                      const std::vector<PlannedPass>& passes, MatrixView queries, unsigned k) {
  const unsigned wanted = std::min(k, runner.rows().size().row_count);
  const cudaStream_t stream = runner.workspace().stream(0);
  DeviceTime time;
  time.passes = passes.size();
  if (!passes.empty()) time.variant = passes.front().plan.variant->name;
  for (const PlannedPass& pass : passes) {
    const std::vector<QuerySpec> specs = AllWanting(pass.count, k);
    runner.Run(pass.plan, {queries.Slice(pass.first, pass.count), specs},
               UnfilteredQueries(pass.count, wanted));
    TakeAnswers(runner, pass.count, time);
    Add(TimedWork(device, stream, [&] { runner.EnqueuePass(pass.plan); }).Time(passes.size()),
        time.kernels);
    Add(TimedWork(device, stream, [&] { runner.EnqueueAgain(); }).Time(passes.size()),
        time.with_copies);
  }
  return time;
}

}  // namespace simile::bench::gpu
