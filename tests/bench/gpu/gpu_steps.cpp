// Times the GPU engine's passes by each of its choices (docs/benchmarks/gpu.md). gpu_decisions.py
// says which the plan should make.
//
//   gpu_steps --json steps.json
//   gpu_steps --step finish --step variants/gemm_topk_fp16 --shape 1000000x768
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <exception>
#include <limits>
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

constexpr std::string_view kVariants = "variants";

struct Step {
  std::string_view name;
  void (*measure)(const StepBench& bench);
};
constexpr std::string_view kTile = "tile";  // GEMM passes: needs cuBLAS
constexpr Step kSteps[] = {{kVariants, MeasureVariants}, {"second-gate", MeasureSecondGates},
                           {"finish", MeasureFinish},    {kTile, MeasureTiles},
                           {"gather", MeasureGather},    {"exchange", MeasureExchange}};

struct Options {
  int device = 0;
  std::vector<std::string> shapes{"62423x384", "1000000x768"};
  std::vector<std::string> steps;
  std::vector<std::string> blas;
  std::string json_path;
  std::size_t cases_max = std::numeric_limits<std::size_t>::max();
  bool card_only = false;
  bool list = false;

  bool Wants(std::string_view step) const {
    return steps.empty() || std::ranges::count(steps, step) != 0 ||
           (step == kVariants && !Variants().empty());
  }
  // Of the steps "variants/NAME"; empty: all, if any.
  std::vector<std::string> Variants() const {
    std::vector<std::string> names;
    if (std::ranges::count(steps, kVariants) != 0) return names;
    for (const std::string& step : steps) {
      if (const std::size_t slash = step.find('/'); slash != std::string::npos) {
        names.push_back(step.substr(slash + 1));
      }
    }
    return names;
  }
};

// "variants/NAME" of each variant: each may run in a process of its own.
std::vector<std::string> VariantSteps() {
  std::vector<std::string> names;
  for (const backend::cuda::KernelVariant& variant : backend::cuda::KernelVariants()) {
    names.push_back(fmt::format("{}/{}", kVariants, variant.name));
  }
  return names;
}

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
  const auto failed = [&](std::string_view why) {
    return absl::InternalError(fmt::format("{} {}: {}", step.name, bench.shape, why));
  };
  try {
    step.measure(bench);
    return absl::OkStatus();
  } catch (const std::exception& error) {  // DeviceError, or this machine is out of memory
    return failed(error.what());
  }
}

// Whether the step measures nothing without cuBLAS.
bool NeedsBlas(const Step& step, const Options& options) {
  if (step.name != kVariants) return step.name == kTile;
  const std::vector<std::string> names = options.Variants();
  return !names.empty() &&
         std::ranges::none_of(backend::cuda::KernelVariants(), [&](const auto& variant) {
           return IsScan(variant.strategy) && std::ranges::count(names, variant.name) != 0;
         });
}

// The wanted steps, without those that the file names as skipped.
std::vector<Step> StepsOf(const Card& card, const Options& options, StepLog& log) {
  std::vector<Step> steps;
  for (const Step& step : kSteps) {
    if (!options.Wants(step.name)) continue;
    if (!card.blas_missing().empty() && NeedsBlas(step, options)) {
      log.Skip(std::string(step.name), card.blas_missing());
    } else {
      steps.push_back(step);
    }
  }
  return steps;
}

absl::Status MeasureShape(Card& card, const Options& options, const std::vector<Step>& steps_wanted,
                          const std::string& text, backend::cpu::ThreadPool& pool, StepLog& log) {
  constexpr std::size_t kQueries = 1'000;
  constexpr std::size_t kSmallSegment = 100'000;
  constexpr std::size_t kVerified = 64;  // queries of each batch: the scan on the CPU takes time
  constexpr std::uint32_t kVerifiedHits = 1'000;  // the longest answer of a step
  const auto shape = ParseShape(text);
  if (!shape.ok()) return shape.status();
  const SyntheticRows source(Spread::kClustered, shape->dim, 1, 1);
  auto rows = source.Draw(0, shape->rows, pool);
  if (!rows.ok()) return rows.status();
  const auto queries = source.Draw(SyntheticRows::kFirstQuery, kQueries, pool);
  if (!queries.ok()) return queries.status();
  const unsigned k = shape->rows > kSmallSegment ? 100U : 10U;
  const auto truth = BenchTruth::Scan(rows->view(), queries->view(), kVerified, kVerifiedHits,
                                      pool.thread_count());
  if (!truth.ok()) return truth.status();
  backend::cuda::ResidentRows resident(card.device, {rows->view(), nullptr, Metric::kCosine, 0},
                                       ResidentSizeOf(card.device, rows->view()));
  const StepBench bench{card,   resident,           queries->view(),  text, k, log,
                        *truth, options.Variants(), options.cases_max};
  absl::Status status;
  for (const Step& step : steps_wanted) {
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
    MeasureCeilings(card, {384, 768}, {64, 128, 1'000},
                    [&](const Ceilings& so_far) { log.Set(kCeilings, ToJson(so_far)); });
    if (!card.blas_missing().empty()) log.Skip("products", card.blas_missing());
  }
  const std::vector<Step> steps = StepsOf(card, options, log);
  if (steps.empty()) return log.status();
  absl::Status status;
  for (const std::string& shape : options.shapes) {
    try {
      status.Update(MeasureShape(card, options, steps, shape, pool, log));
    } catch (const std::exception& error) {  // DeviceError, or this machine is out of memory
      status.Update(absl::InternalError(fmt::format("{}: {}", shape, error.what())));
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
  CLI::App app{"The GPU engine's passes, timed by each of its choices"};
  std::vector<std::string> names = VariantSteps();
  names.insert(names.begin(), kCeilings);
  for (const Step& step : kSteps) {
    if (step.name != kVariants) names.emplace_back(step.name);
  }
  std::vector<std::string> known = names;
  known.emplace_back(kVariants);
  app.add_option("--device", options.device, "As CUDA numbers them");
  app.add_option("--shape", options.shapes, "Rows x dimensions; default 62423x384 and 1000000x768");
  app.add_option("--step", options.steps, "These alone; default all")->check(CLI::IsMember(known));
  app.add_option("--blas", options.blas, "cuBLAS, as for dlopen; default the toolkit's own name");
  app.add_option("--json", options.json_path, "File to write all figures to");
  app.add_option("--cases", options.cases_max,
                 "Of a step's batch sizes, k and the like, the first so many; default all")
      ->check(CLI::PositiveNumber);
  app.add_flag("--card", options.card_only, "Open the card, print what it is, and end");
  app.add_flag("--list", options.list,
               "Print the names of the steps, each variant by itself, and end");
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
