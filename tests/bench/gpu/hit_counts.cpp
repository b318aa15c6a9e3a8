// How many hits, rescored rows and reruns the GPU engine's passes take for each query: its own
// plans, kernels, bounds and proofs on the emulated device, so that no card is needed. Every proven
// answer is compared with the plain scan's. Says nothing of times.
//
//   hit_counts --vectors F.npy --queries Q.npy --query-count 1000 --k 10,100,1000
//   hit_counts --synthetic clustered --rows 1000000 --dim 768 --query-count 32 --k 100
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "backend/cpu/thread_pool.h"
#include "backend/cuda/batch_search.h"
#include "backend/cuda/blas_library.h"
#include "backend/cuda/device_error.h"
#include "backend/cuda/emulated_gpu.h"
#include "backend/cuda/pass_runner.h"
#include "base/cpu_count.h"
#include "bench/bench_data.h"
#include "bench/gpu/bench_truth.h"
#include "bench/gpu/planned_passes.h"
#include "bench/gpu/query_specs.h"
#include "emulated_cuda/emulated_device.h"

namespace simile::bench::gpu {
namespace {

using backend::cuda::PassPlan;

struct Options {
  EngineOptions data;  // source of the vectors, and the ks
  std::size_t batch = 32;
  std::uint64_t seed = 2;  // of the device; even ones round a sum once, which is faster
};

void AddOptions(CLI::App& app, Options& options) {
  EngineOptions& data = options.data;
  AddDataOptions(app, data);
  app.add_option("--batch", options.batch, "Queries of a pass")->check(CLI::PositiveNumber);
  app.add_option("--k", data.ks, "Hits a query")->delimiter(',');
  app.add_option("--device-seed", options.seed, "An odd one cuts sums as the worst card does");
}

struct Counts {
  std::vector<unsigned> hits, rescored;
  std::size_t overflows = 0;
  std::size_t reruns = 0;  // overflows among them
};

absl::Status CountPass(backend::cuda::PassRunner& runner, const PassPlan& plan, MatrixView queries,
                       std::uint32_t k, const BenchTruth& truth, std::size_t first,
                       Counts& counts) {
  const std::vector<QuerySpec> specs = AllWanting(queries.row_count(), k);
  runner.Run(plan, {queries, specs}, UnfilteredQueries(queries.row_count(), k));
  std::vector<std::vector<kernels::Key>> answers(queries.row_count());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const kernels::Proof proof = runner.ProofOf(i);
    counts.hits.push_back(proof.hits);
    counts.rescored.push_back(proof.kept);
    if (proof.flag == kernels::kOverflow) ++counts.overflows;
    if (proof.flag == kernels::kProven) {
      for (const Hit& hit : runner.Answer(i)) answers[i].push_back(KeyOf(hit).packed());
    } else {
      ++counts.reruns;
    }
  }
  return truth.CheckProven(answers, first, k).status();
}

// "38 / 71 / 90": mean, 99th of a hundred, greatest.
std::string Summary(std::vector<unsigned> values) {
  std::ranges::sort(values);
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  return fmt::format("{:.0f} / {} / {}", mean, values[(values.size() - 1) * 99 / 100],
                     values.back());
}

absl::Status Count(const Options& options) {
  const unsigned threads = base::UsableCpuCount();
  backend::cpu::ThreadPool pool(threads);
  const auto data = GetData(options.data, pool);
  if (!data.ok()) return data.status();
  const MatrixView rows = data->rows.view();
  const MatrixView queries =
      data->queries.view().Slice(0, std::min(options.data.query_count, data->queries.row_count()));
  const auto truth =
      BenchTruth::Scan(rows, queries, queries.row_count(), options.data.k_max(), threads);
  if (!truth.ok()) return truth.status();

  auto gpu = tests::EmulatedOptions();
  gpu.workspace = backend::WorkspaceSize();  // as served
  const backend::SegmentSize size{static_cast<unsigned>(rows.row_count()),
                                  static_cast<unsigned>(rows.padded_dim())};
  const backend::ResidentSize resident_size = backend::PlanResident(size, false, true);
  tests::ResetEmulatedGpu(
      tests::CardOf(0), options.seed,
      resident_size.total() + backend::WorkspaceBytes(gpu.workspace) + (std::size_t{64} << 20));
  const backend::cuda::BlasLibrary blas = backend::cuda::LoadBlas(gpu);
  if (!blas.loaded()) return absl::NotFoundError(blas.missing);
  backend::cuda::Device device(gpu, blas);
  backend::cuda::Workspace workspace(device, gpu.workspace, 1);
  backend::cuda::ResidentRows resident(device, {rows, nullptr, Metric::kCosine, 0}, resident_size);
  backend::cuda::PassRunner runner(device, workspace, resident);

  fmt::print("{} x {}, {}; {} queries, {} at a time. Mean / p99 / greatest of a query.\n\n",
             rows.row_count(), rows.dim(), data->description, queries.row_count(), options.batch);
  fmt::print(
      "| pass | k | sample groups, rank | capacity | hits | rescored | reruns | of them "
      "overflows |\n|---|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const std::uint32_t k : options.data.ks) {
    for (const bool int8 : {false, true}) {
      Counts counts;
      std::optional<PassPlan> plan;
      for (std::size_t first = 0; first < queries.row_count();) {
        const std::size_t left = std::min(options.batch, queries.row_count() - first);
        plan = backend::cuda::PlanPass(device.traits(), gpu.tuning, workspace.size(), size,
                                       DemandOf(resident, left, k, k, int8));
        if (!plan) {
          return absl::InvalidArgumentError(
              fmt::format("k {}: the engine makes no pass for so few rows", k));
        }
        const std::size_t count = std::min<std::size_t>(plan->slots, left);
        if (absl::Status status =
                CountPass(runner, *plan, queries.Slice(first, count), k, *truth, first, counts);
            !status.ok()) {
          return status;
        }
        first += count;
      }
      fmt::print("| {} | {} | {}, {} | {} | {} | {} | {} | {} |\n", plan->variant->name, k,
                 plan->sample_groups, plan->RanksOf(k).first, plan->capacity, Summary(counts.hits),
                 Summary(counts.rescored), counts.reruns, counts.overflows);
      std::fflush(stdout);
    }
  }
  const std::string report = emulated_cuda::TakeReport();
  return report.empty() ? absl::OkStatus() : absl::InternalError(report);
}

}  // namespace
}  // namespace simile::bench::gpu

int main(int argc, char** argv) {
  simile::bench::gpu::Options options;
  options.data.ks = {10, 100, 1'000};
  options.data.batches = {1};  // of EngineOptions; unused here
  CLI::App app{"Hits, rescored rows and reruns of the GPU engine, without a GPU"};
  simile::bench::gpu::AddOptions(app, options);
  CLI11_PARSE(app, argc, argv);
  try {
    const absl::Status status = simile::bench::gpu::Count(options);
    if (status.ok()) return 0;
    fmt::print(stderr, "error: {}\n", std::string(status.message()));
  } catch (const simile::backend::cuda::DeviceError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
  }
  return 1;
}
