// The host's share of a search on a GPU, by part: the engine on a device whose work takes no time.
// The parts are the engine's profiler ranges. Needs no card.
//
//   gpu_host_bench --rows 62423 --dim 384 --batch 1,32,100,1000 --k 10,100,1000
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "backend/cpu/thread_pool.h"
#include "backend/cuda/batch_search.h"
#include "backend/gpu_memory.h"
#include "bench/gpu/card.h"
#include "bench/gpu/idle_device.h"
#include "bench/gpu/json_file.h"
#include "bench/gpu/planned_passes.h"
#include "bench/gpu/query_specs.h"
#include "bench/synthetic_rows.h"
#include "bench/timing.h"

namespace simile::bench::gpu {
namespace {

using backend::cuda::BatchSearch;
using backend::cuda::PassRunner;
using backend::cuda::ResidentRows;
using backend::cuda::StrategyNames;

struct Options {
  std::size_t rows = 62'423;
  std::size_t dim = 384;
  std::vector<std::size_t> batches{1, 32, 100, 1'000};
  std::vector<std::uint32_t> ks{10, 100, 1'000};
  std::string json_path;
};

// Median microseconds of a search, whole and by part.
struct HostTimes {
  std::size_t batch = 0;
  std::uint32_t k = 0;
  std::string answered_by;
  std::size_t passes = 0;
  double whole_us = 0;
  std::map<std::string, double> parts_us;  // "rest": outside of every range
};

// Answers of k proven hits for every slot of a pass, in the block that the host reads.
void WriteAnswers(std::byte* answers, const backend::cuda::PassPlan& plan, std::uint32_t k) {
  const backend::AnswerBlock block = backend::LayAnswers(plan.slots, plan.best_stride);
  auto* proofs = reinterpret_cast<kernels::Proof*>(answers + block.proofs_at);
  auto* best = reinterpret_cast<kernels::AnswerHit*>(answers + block.best_at);
  std::fill_n(proofs, plan.slots, kernels::Proof{kernels::kProven, 2 * k, k, k});
  for (std::size_t slot = 0; slot < plan.slots; ++slot) {
    for (std::uint32_t rank = 0; rank < plan.best_stride; ++rank) {
      best[slot * plan.best_stride + rank] = {static_cast<unsigned>(rank + slot),
                                              1 / (1 + static_cast<float>(rank))};
    }
  }
}

// Errors: kInternal for an answer without all hits.
absl::StatusOr<HostTimes> Measure(Card& card, ResidentRows& rows, const backend::GpuTuning& tuning,
                                  MatrixView queries, std::uint32_t k) {
  constexpr std::size_t kWarm = 5, kRounds = 101;
  HostTimes times;
  times.batch = queries.row_count();
  times.k = k;
  const std::vector<PlannedPass> passes =
      PlanBatch(card.device.traits(), card.workspace.size(), rows, queries.row_count(), k);
  times.passes = passes.size();
  const backend::cuda::PassPlan& plan = passes.front().plan;
  for (unsigned block = 0; block < backend::kHostAnswerBlocks; ++block) {
    WriteAnswers(card.workspace.host_answers(block)->get(), plan, k);
  }
  // Mapped answers are short: they come in the first block.
  auto* proofs = reinterpret_cast<kernels::Proof*>(card.workspace.host_answers(0)->get());
  IdleDevice::Get().on_work = [&plan, proofs] {
    if (!plan.is_mapped) return;
    for (unsigned slot = 0; slot < plan.slots; ++slot) proofs[slot].flag = kernels::kProven;
  };
  const StrategyNames names(card.device.traits().capability);
  const std::vector<QuerySpec> specs = AllWanting(queries.row_count(), k);
  SearchResult result;
  std::vector<double> whole;
  std::map<std::string, std::vector<double>> parts;
  for (std::size_t round = 0; round < kWarm + kRounds; ++round) {
    const auto began = std::chrono::steady_clock::now();
    result.ResetWithoutSpace(specs, rows.size().row_count);
    PassRunner runner(card.device, card.workspace, rows);
    BatchSearch(card.device.traits(), tuning, names, runner, nullptr).Run({queries, specs}, result);
    const double us =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count();
    std::map<std::string, double> ranges = IdleDevice::Get().TakeRangeTimes();
    if (round < kWarm) continue;
    whole.push_back(us);
    double rest = us;
    for (const auto& [name, range_us] : ranges) {
      parts[name].push_back(range_us);
      rest -= range_us;
    }
    parts["rest"].push_back(rest);
  }
  for (std::size_t query = 0; query < result.batch(); ++query) {
    if (result.Hits(query).size() != k) return absl::InternalError("an answer lacks hits");
  }
  times.answered_by = result.Engine(0);
  times.whole_us = Median(whole);
  for (const auto& [name, of_rounds] : parts) times.parts_us[name] = Median(of_rounds);
  return times;
}

void Print(const HostTimes& times) {
  std::string parts;
  for (const auto& [name, us] : times.parts_us) {
    parts += fmt::format("{}{} {:.1f}", parts.empty() ? "" : ", ", name, us);
  }
  fmt::print("| {} | {} | {} | {} | {:.1f} | {} |\n", times.batch, times.k, times.answered_by,
             times.passes, times.whole_us, parts);
  std::fflush(stdout);
}

absl::Status Run(const Options& options) {
  backend::cpu::ThreadPool pool(1);
  const SyntheticRows synthetic(Spread::kClustered, options.dim, 1, 1);
  auto rows = synthetic.Draw(0, options.rows, pool);
  if (!rows.ok()) return rows.status();
  auto queries =
      synthetic.Draw(SyntheticRows::kFirstQuery, std::ranges::max(options.batches), pool);
  if (!queries.ok()) return queries.status();
  backend::GpuOptions gpu;
  static const RealClock clock;
  gpu.clock = &clock;
  Card card(gpu, IdleDevice::Blas());
  const MatrixView view = rows->view();
  ResidentRows resident(card.device, {view, nullptr, Metric::kCosine, 0},
                        ResidentSizeOf(card.device, view));
  IdleDevice::Get().copies = false;
  static_cast<void>(IdleDevice::Get().TakeRangeTimes());
  fmt::print("{} x {}, median microseconds of a search\n\n", options.rows, options.dim);
  fmt::print("| batch | k | engine | passes | whole | parts |\n|---:|---:|---|---:|---:|---|\n");
  nlohmann::json lines = nlohmann::json::array();
  for (const std::size_t batch : options.batches) {
    for (const std::uint32_t k : options.ks) {
      const auto measured = Measure(card, resident, gpu.tuning, queries->view().Slice(0, batch), k);
      if (!measured.ok()) return measured.status();
      const HostTimes& times = *measured;
      Print(times);
      lines.push_back({{"batch", batch},
                       {"k", k},
                       {"engine", times.answered_by},
                       {"passes", times.passes},
                       {"us", times.whole_us},
                       {"parts_us", times.parts_us}});
    }
  }
  return WriteJsonFile(lines, options.json_path);
}

}  // namespace
}  // namespace simile::bench::gpu

int main(int argc, char** argv) {
  simile::bench::gpu::Options options;
  CLI::App app{"The host's share of a search on a GPU, by part, without a GPU"};
  app.add_option("--rows", options.rows, "Rows of the collection");
  app.add_option("--dim", options.dim, "Dimensions");
  app.add_option("--batch", options.batches, "Batch sizes")->delimiter(',');
  app.add_option("--k", options.ks, "Hits a query")->delimiter(',');
  app.add_option("--json", options.json_path, "File to write all figures to");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = simile::bench::gpu::Run(options);
  return status.ok() ? 0 : simile::bench::gpu::Explain(status);
}
