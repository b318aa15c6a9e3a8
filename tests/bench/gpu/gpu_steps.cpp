// Times the GPU engine's kernels one by one; later decisions depend on earlier figures
// (docs/benchmarks/gpu.md). gpu_decisions.py draws the conclusions.
//
//   gpu_steps --json steps.json
//   gpu_steps --step scan-shape --step tile --shape 1000000x768
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "backend/cpu/thread_pool.h"
#include "base/cpu_count.h"
#include "bench/gpu/ceilings.h"
#include "bench/gpu/measuring_steps.h"
#include "bench/synthetic_rows.h"
#include "data/matrix.h"

namespace simile::bench::gpu {
namespace {

// Read, copy and product rates, of no shape: the first step.
constexpr const char* kCeilings = "ceilings";

struct Step {
  const char* name;
  void (*measure)(const StepBench& bench);
  bool of_parts = true;  // times PassSteps' copy of the engine's pass
};
constexpr Step kSteps[] = {{"variants", MeasureVariants, false},
                           {"scan-shape", MeasureScanShapes},
                           {"scan-parts", MeasureScanParts},
                           {"finish", MeasureFinish},
                           {"gemm-pass", MeasureGemmPass},
                           {"select", MeasureSelect},
                           {"gate-and-finish", MeasureGateAndFinish},
                           {"tile", MeasureTiles},
                           {"rescore", MeasureRescore},
                           {"gather", MeasureGather, false},
                           {"exchange", MeasureExchange, false}};

struct Options {
  int device = 0;
  std::vector<std::string> shapes{"62423x384", "1000000x768"};
  std::vector<std::string> steps;
  std::vector<std::string> blas;
  std::string json_path;
  bool card_only = false;
  bool list = false;

  bool Wants(std::string_view step) const {
    return steps.empty() || std::ranges::find(steps, step) != steps.end();
  }
};

struct Shape {
  std::size_t rows = 0;
  std::size_t dim = 0;
};

absl::StatusOr<Shape> ParseShape(const std::string& text) {
  Shape shape;
  const char* const end = text.data() + text.size();
  const auto rows = std::from_chars(text.data(), end, shape.rows);
  if (rows.ec == std::errc() && rows.ptr != end && *rows.ptr == 'x') {
    const auto dim = std::from_chars(rows.ptr + 1, end, shape.dim);
    if (dim.ec == std::errc() && dim.ptr == end && shape.rows > 5'000 && shape.dim > 0) {
      return shape;
    }
  }
  return absl::InvalidArgumentError(
      fmt::format("--shape {}: rows x dimensions, as 62423x384, with more than 5,000 rows", text));
}

// A step that fails does not end the others.
absl::Status MeasureStep(const Step& step, const StepBench& bench) {
  try {
    step.measure(bench);
    return absl::OkStatus();
  } catch (const backend::cuda::DeviceError& error) {
    return absl::InternalError(fmt::format("{} {}: {}", step.name, bench.shape, error.what()));
  } catch (const std::bad_optional_access&) {
    return absl::InternalError(
        fmt::format("{} {}: the engine has no such pass for it", step.name, bench.shape));
  }
}

// That PassSteps gives the engine's answers.
absl::Status CheckParts(PassSteps& steps, Card& card, MatrixView queries, unsigned k) {
  for (const auto strategy :
       {backend::cuda::PassStrategy::kRowScan, backend::cuda::PassStrategy::kGemm}) {
    for (const unsigned batch : {1U, 64U, 100U}) {
      for (const PlannedPass& pass : PlanBatch(strategy, card.device.traits(),
                                               card.workspace.size(), steps.rows(), batch, k)) {
        const auto unproven =
            steps.CheckAgainst(pass.plan, queries.Slice(pass.first, pass.count), k);
        if (!unproven.ok()) return unproven.status();
      }
    }
  }
  return absl::OkStatus();
}

absl::Status MeasureShape(Card& card, const Options& options, const std::string& text,
                          backend::cpu::ThreadPool& pool, StepLog& log) {
  constexpr std::size_t kQueries = 1'000;
  constexpr std::size_t kSmallSegment = 100'000;
  const auto shape = ParseShape(text);
  if (!shape.ok()) return shape.status();
  const SyntheticRows source(Spread::kClustered, shape->dim, 1, 1);
  auto rows = source.Draw(0, shape->rows, pool);
  if (!rows.ok()) return rows.status();
  const auto queries = source.Draw(SyntheticRows::kFirstQuery, kQueries, pool);
  if (!queries.ok()) return queries.status();
  backend::cuda::ResidentRows resident(card.device, {rows->view(), nullptr, Metric::kCosine, 0},
                                       true);
  PassSteps steps(card.device, card.workspace, resident);
  const StepBench bench{
      card, steps, queries->view(), text, shape->rows > kSmallSegment ? 100U : 10U, log};
  absl::Status status = CheckParts(steps, card, queries->view(), bench.k);
  const bool parts_are_right = status.ok();
  for (const Step& step : kSteps) {
    if (!options.Wants(step.name) || (step.of_parts && !parts_are_right)) continue;
    status.Update(MeasureStep(step, bench));
    if (card.device.lost()) break;
  }
  return status;
}

absl::Status Measure(Card& card, const Options& options) {
  if (options.card_only) {
    fmt::print("{}\n", Describe(card.device.traits()).dump());
    return absl::OkStatus();
  }
  backend::cpu::ThreadPool pool(base::UsableCpuCount());
  StepLog log({{"card", Describe(card.device.traits())}}, options.json_path);
  if (options.Wants(kCeilings)) {
    log.Set(kCeilings, ToJson(MeasureCeilings(card, {384, 768}, {64, 128, 1'000})));
  }
  if (options.steps == std::vector<std::string>{kCeilings}) return log.status();
  absl::Status status;
  for (const std::string& shape : options.shapes) {
    try {
      status.Update(MeasureShape(card, options, shape, pool, log));
    } catch (const backend::cuda::DeviceError& error) {
      status.Update(absl::InternalError(error.what()));
    }
    if (card.device.lost()) break;
  }
  status.Update(log.status());
  return status;
}

}  // namespace
}  // namespace simile::bench::gpu

int main(int argc, char** argv) {
  using namespace simile::bench::gpu;  // NOLINT(google-build-using-namespace)
  Options options;
  CLI::App app{"The GPU engine's kernels, timed one by one"};
  std::vector<std::string> names;
  names.emplace_back(kCeilings);
  for (const Step& step : kSteps) names.emplace_back(step.name);
  app.add_option("--device", options.device, "As CUDA numbers them");
  app.add_option("--shape", options.shapes, "Rows x dimensions; default 62423x384 and 1000000x768");
  app.add_option("--step", options.steps, "These alone; default all")->check(CLI::IsMember(names));
  app.add_option("--blas", options.blas, "cuBLAS, as for dlopen; default the toolkit's own name");
  app.add_option("--json", options.json_path, "File to write all figures to");
  app.add_flag("--card", options.card_only, "Open the card, print what it is, and end");
  app.add_flag("--list", options.list, "Print the names of the steps, and end");
  CLI11_PARSE(app, argc, argv);
  if (options.list) {
    for (const std::string& name : names) fmt::print("{}\n", name);
    return 0;
  }
  auto gpu = BenchOptions();
  gpu.device = options.device;
  gpu.blas_libraries = options.blas;
  return WithCard(gpu, [&](Card& card) { return Measure(card, options); });
}
