// The GPU engine on one set of vectors: time on the device, and host to host through the backend as
// the server calls it, for every batch and k. Times are reported only for answers that equal the
// plain scan's on the CPU in rows and score bits. A case that fails ends no other.
//
//   gpu_bench --synthetic clustered --rows 62423 --dim 384 --json gpu.json
//   gpu_bench --vectors F.npy --queries Q.npy --batch 1,32 --k 10
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "backend/cpu/thread_pool.h"
#include "backend/cuda/cuda_backend.h"
#include "base/threads.h"
#include "bench/bench_data.h"
#include "bench/gpu/bench_truth.h"
#include "bench/gpu/card.h"
#include "bench/gpu/ceilings.h"
#include "bench/gpu/device_times.h"
#include "bench/gpu/query_specs.h"

namespace simile::bench::gpu {
namespace {

struct Options {
  EngineOptions data;  // source of the vectors, batches and ks
  int device = 0;
  std::vector<std::string> blas;
  std::size_t verify = 1'000;
  std::string save_folder;
  std::string json_path;
  bool card_only = false;
};

struct BenchCase {
  std::size_t batch = 0;
  std::uint32_t k = 0;
  std::string answered_by = {};
  std::size_t verified = 0;         // answers compared host to host, all equal
  std::size_t device_verified = 0;  // likewise, of the passes that are timed on the device
  std::uint64_t rescans = 0;
  std::uint64_t queries = 0;
  Spread host = {};              // host to host; without samples: not measured yet
  DeviceTime device = {};        // likewise
  std::string device_note = {};  // why there is no device time
  std::string host_error = {};   // why there is no such time though there should be
  std::string device_error = {};
};

void AddOptions(CLI::App& app, Options& options) {
  EngineOptions& data = options.data;
  AddDataOptions(app, data);
  app.add_option("--batch", data.batches, "Batch sizes")->delimiter(',');
  app.add_option("--k", data.ks, "Hits a query")->delimiter(',');
  app.add_option("--verify", options.verify, "Queries whose answers are compared; at least 1")
      ->check(CLI::PositiveNumber);
  app.add_option("--device", options.device, "As CUDA numbers them");
  app.add_option("--blas", options.blas, "cuBLAS, as for dlopen; default the toolkit's own name");
  app.add_option("--save", options.save_folder,
                 "Folder for vectors, queries and exact rows as .npy, for a rival and a server");
  app.add_option("--json", options.json_path, "File to write all figures to");
  app.add_flag("--card", options.card_only, "Open the card, print what it is, and end");
}

// Searches with different queries, until there are enough samples or the time is over.
absl::Status TimeOnHost(const SegmentIndex& index, const BenchData& data, const BenchTruth& truth,
                        BenchCase& timed) {
  constexpr std::size_t kWarmRounds = 3;
  constexpr std::size_t kRoundsMin = 7;
  constexpr std::size_t kRoundsMax = 200;
  constexpr auto kBudget = std::chrono::milliseconds(400);
  using Clock = std::chrono::steady_clock;
  const std::vector<QuerySpec> specs = AllWanting(timed.batch, timed.k);
  // Every round begins with queries whose answers are known, so that it is checked.
  const std::size_t windows =
      std::min(truth.query_count(), data.queries.row_count() - timed.batch + 1);
  SearchResult result;
  std::vector<double> samples;
  const auto began = Clock::now();
  for (std::size_t round = 0; samples.size() < kRoundsMax; ++round) {
    if (samples.size() >= kRoundsMin && Clock::now() - began > kBudget) break;
    const std::size_t first = round * timed.batch % windows;
    const auto start = Clock::now();
    const absl::Status status =
        index.Search({data.queries.view().Slice(first, timed.batch), specs}, result);
    const auto end = Clock::now();
    if (!status.ok()) return status;
    const auto checked = truth.Check(result, first, timed.k);
    if (!checked.ok()) return checked.status();
    timed.verified += *checked;
    if (round < kWarmRounds) continue;
    samples.push_back(std::chrono::duration<double, std::micro>(end - start).count());
    timed.queries += timed.batch;
    for (std::size_t query = 0; query < timed.batch; ++query) {
      timed.rescans += result.Cost(query).rescans;
    }
  }
  timed.answered_by = result.Engine(0);
  timed.host = SpreadOf(samples);
  return absl::OkStatus();
}

nlohmann::json ToJson(const Spread& spread) {
  return {{"median", spread.median_us},
          {"min", spread.min_us},
          {"max", spread.max_us},
          {"samples", spread.samples}};
}

nlohmann::json ToJson(const BenchCase& timed) {
  nlohmann::json json{{"batch", timed.batch}, {"k", timed.k}};
  if (timed.host.samples != 0) {
    json["answered_by"] = timed.answered_by;
    json["verified"] = timed.verified;
    json["queries"] = timed.queries;
    json["rescans"] = timed.rescans;
    json["host_us"] = ToJson(timed.host);
  }
  if (!timed.device_note.empty()) json["device_note"] = timed.device_note;
  if (!timed.host_error.empty()) json["host_error"] = timed.host_error;
  if (!timed.device_error.empty()) json["device_error"] = timed.device_error;
  if (timed.device.kernels.samples != 0) {
    json["variant"] = timed.device.variant;
    json["passes"] = timed.device.passes;
    json["unproven"] = timed.device.unproven;
    json["device_verified"] = timed.device_verified;
    json["device_us"] = ToJson(timed.device.kernels);
    json["with_copies_us"] = ToJson(timed.device.with_copies);
  }
  return json;
}

// All cases, and what the file says of them: written after each one, so that a run that is stopped
// loses nothing.
struct Results {
  std::vector<BenchCase> cases;
  nlohmann::json head;
  std::string path;

  absl::Status Write() const {
    nlohmann::json json = head;
    json["cases"] = nlohmann::json::array();
    for (const BenchCase& timed : cases) json["cases"].push_back(ToJson(timed));
    return WriteJsonFile(json, path);
  }
};

// Runs one measurement of a case; the file names it meanwhile.
//   error  the case's, set where the work fails
// Errors: that of the work, which throws DeviceError, too, or of writing the file.
template <class Work>
absl::Status MeasureCase(const char* what, const BenchCase& timed, std::string& error,
                         Results& results, Work work) {
  const std::string name = fmt::format("{}, k {}, batch {}", what, timed.k, timed.batch);
  fmt::print("{}\n", name);
  std::fflush(stdout);
  results.head["running"] = name;
  absl::Status written = results.Write();
  absl::Status status;
  try {
    status = work();
  } catch (const std::exception& thrown) {  // DeviceError, or this machine is out of memory
    status = absl::InternalError(thrown.what());
  }
  error = std::string(status.message());
  if (!status.ok()) status = absl::Status(status.code(), fmt::format("{}: {}", name, error));
  results.head.erase("running");
  status.Update(written);
  status.Update(results.Write());
  return status;
}

// Errors: the first one; kUnavailable when the device is lost.
absl::Status MeasureHost(const backend::GpuOptions& gpu, const BenchData& data,
                         const BenchTruth& truth, std::span<BenchCase> cases, Results& results) {
  const auto backend = backend::cuda::OpenCudaBackend(gpu);
  if (!backend.ok()) return backend.status();
  const auto index = (*backend)->MakeResident({data.rows.view(), nullptr, Metric::kCosine, 0});
  if (!index.ok()) return index.status();
  absl::Status first;
  for (BenchCase& timed : cases) {
    const absl::Status status = MeasureCase("host to host", timed, timed.host_error, results, [&] {
      return TimeOnHost(**index, data, truth, timed);
    });
    if (absl::IsUnavailable(status)) return status;
    first.Update(status);
  }
  return first;
}

absl::Status TimeOnDevice(Card& card, backend::cuda::PassRunner& runner, const BenchData& data,
                          const BenchTruth& truth, BenchCase& timed) {
  const auto passes =
      PlanBatch(card.device.traits(), card.workspace.size(), runner.rows(), timed.batch, timed.k);
  if (passes.empty()) {
    timed.device_note =
        fmt::format("k {} of {} rows: the engine answers it from canonical scores at once", timed.k,
                    runner.rows().size().row_count);
    return absl::OkStatus();
  }
  const DeviceTime time =
      TimePasses(card.device, runner, passes, data.queries.view().Slice(0, timed.batch), timed.k);
  const auto checked = truth.CheckProven(time.answers, timed.k);
  if (!checked.ok()) return checked.status();
  if (!time.few_are_unproven() || *checked == 0) {
    return absl::InternalError(fmt::format("{} of {} answers are unproven, {} were compared",
                                           time.unproven, timed.batch, *checked));
  }
  timed.device_verified = *checked;
  timed.device = time;
  return absl::OkStatus();
}

// Errors: the first one; kUnavailable when the device is lost.
absl::Status MeasureDevice(const backend::GpuOptions& gpu, const backend::cuda::BlasLibrary& blas,
                           const BenchData& data, const BenchTruth& truth,
                           std::span<BenchCase> cases, Results& results) try {
  Card card(gpu, blas);
  backend::cuda::ResidentRows rows(card.device, {data.rows.view(), nullptr, Metric::kCosine, 0},
                                   ResidentSizeOf(card.device, data.rows.view()));
  backend::cuda::PassRunner runner(card.device, card.workspace, rows);
  absl::Status first;
  for (BenchCase& timed : cases) {
    first.Update(MeasureCase("on the device", timed, timed.device_error, results,
                             [&] { return TimeOnDevice(card, runner, data, truth, timed); }));
    if (card.device.lost()) return card.device.WhyLost();
  }
  return first;
} catch (const backend::cuda::DeviceError& error) {
  return absl::InternalError(error.what());
}

// Errors: the first one; the other cases are measured all the same, unless the device is lost.
absl::Status MeasureAll(const backend::GpuOptions& gpu, const backend::cuda::BlasLibrary& blas,
                        const BenchData& data, const BenchTruth& truth, Results& results) {
  // The targets are for k up to 100: what goes wrong with longer answers must not cost them.
  constexpr std::uint32_t kTargetsMax = 100;
  const auto longer = std::ranges::stable_partition(
      results.cases, [](const BenchCase& timed) { return timed.k <= kTargetsMax; });
  absl::Status first;
  for (const std::span<BenchCase> cases :
       {std::span(results.cases.begin(), longer.begin()), std::span(longer)}) {
    if (cases.empty()) continue;
    absl::Status status = MeasureDevice(gpu, blas, data, truth, cases, results);
    first.Update(status);
    if (absl::IsUnavailable(status)) break;
    status = MeasureHost(gpu, data, truth, cases, results);
    first.Update(status);
    if (absl::IsUnavailable(status)) break;
  }
  return first;
}

void Print(const BenchCase& timed, const BenchData& data, const Ceilings& ceilings) {
  const double values = static_cast<double>(data.rows.row_count()) *
                        static_cast<double>(data.rows.view().padded_dim());
  const double read_us = 2 * values / ceilings.copy_gb_s / 1e3;
  double gemm_us = 0;
  for (const GemmCeiling& gemm : ceilings.gemm) {
    if (gemm.batch == timed.batch) {
      gemm_us = 2 * values * static_cast<double>(timed.batch) / gemm.tflops / 1e6;
    }
  }
  const double us = timed.device.kernels.median_us;
  fmt::print(
      "{:>6} {:>6}  {:<14} {:>10.1f} {:>10.1f} {:>10.1f} {:>7.0f}% {:>7.0f}% {:>9} {:>9} {:>8}\n",
      timed.batch, timed.k, timed.answered_by, us, timed.device.with_copies.median_us,
      timed.host.median_us, us > 0 ? 100 * read_us / us : NAN,
      us > 0 && gemm_us > 0 ? 100 * gemm_us / us : NAN, timed.verified, timed.device.unproven,
      timed.rescans);
}

absl::Status Save(const Options& options, const BenchData& data, const BenchTruth& truth) {
  if (options.save_folder.empty()) return absl::OkStatus();
  absl::Status status = WriteNpy(options.save_folder + "/content_vectors.npy", data.rows.view());
  status.Update(WriteNpy(options.save_folder + "/queries.npy", data.queries.view()));
  status.Update(WriteNpy(options.save_folder + "/rows.npy", truth.Rows(), truth.query_count()));
  return status;
}

absl::Status Check(const Options& options) {
  const EngineOptions& data = options.data;
  const bool files = !data.vectors_path.empty() && !data.queries_path.empty();
  if (files == !data.synthetic.empty()) {
    return absl::InvalidArgumentError(
        "nothing to search: give --vectors F.npy and --queries Q.npy, or --synthetic clustered");
  }
  for (const std::size_t batch : data.batches) {
    if (batch == 0 || (!files && batch > data.query_count)) {
      return absl::InvalidArgumentError(
          fmt::format("--batch {}: 1 .. {} (--query-count)", batch, data.query_count));
    }
  }
  return absl::OkStatus();
}

absl::Status Bench(const Options& options, const backend::GpuOptions& gpu) {
  if (absl::Status status = Check(options); !status.ok()) return status;
  const unsigned threads = base::UsableCpuCount();
  backend::cpu::ThreadPool pool(threads);
  const auto data = GetData(options.data, pool);
  if (!data.ok()) return data.status();
  const auto truth = BenchTruth::Scan(data->rows.view(), data->queries.view(), options.verify,
                                      options.data.k_max(), threads);
  if (!truth.ok()) return truth.status();
  // First, because the rival needs them even if this run is stopped.
  if (absl::Status status = Save(options, *data, *truth); !status.ok()) return status;
  Results results;
  results.path = options.json_path;
  for (const std::uint32_t k : options.data.ks) {
    for (const std::size_t batch : options.data.batches) {
      results.cases.push_back({.batch = batch, .k = k});
    }
  }
  const backend::cuda::BlasLibrary blas = backend::cuda::LoadBlas(gpu);
  const std::vector<unsigned> batches(options.data.batches.begin(), options.data.batches.end());
  Ceilings ceilings;
  {
    Card card(gpu, blas);
    ceilings =
        MeasureCeilings(card, static_cast<unsigned>(data->rows.view().padded_dim()), batches);
    results.head = {{"card", Describe(card.device.traits())},
                    {"ceilings", ToJson(ceilings)},
                    {"rows", data->rows.row_count()},
                    {"dim", data->rows.dim()},
                    {"padded_dim", data->rows.view().padded_dim()},
                    {"data", data->description}};
  }
  if (!blas.missing.empty()) results.head["skipped"] = {{"products", blas.missing}};
  absl::Status status = MeasureAll(gpu, blas, *data, *truth, results);

  fmt::print("{} x {}, {}, on {}; copy {:.0f} GB/s, read {:.0f} GB/s. Medians in us.\n\n",
             data->rows.row_count(), data->rows.dim(), data->description,
             results.head["card"]["name"].get<std::string>(), ceilings.copy_gb_s,
             ceilings.read_gb_s);
  fmt::print("{:>6} {:>6}  {:<14} {:>10} {:>10} {:>10} {:>8} {:>8} {:>9} {:>9} {:>8}\n", "batch",
             "k", "answered by", "device", "+ copies", "host", "of copy", "of GEMM", "verified",
             "unproven", "rescans");
  for (const BenchCase& timed : results.cases) Print(timed, *data, ceilings);
  return status;
}

int Main(const Options& options) {
  auto gpu = BenchOptions();
  gpu.device = options.device;
  gpu.blas_libraries = options.blas;
  if (options.card_only) {
    return WithCard(gpu, [](Card& card) {
      fmt::print("{}\n", Describe(card.device.traits()).dump());
      return absl::OkStatus();
    });
  }
  if (absl::Status status = FindCard(options.device); !status.ok()) {
    Explain(status);
    return kExitNoCard;
  }
  try {
    const absl::Status status = Bench(options, gpu);
    return status.ok() ? 0 : Explain(status);
  } catch (const std::exception& error) {  // DeviceError, or this machine is out of memory
    return Explain(absl::InternalError(error.what()));
  }
}

}  // namespace
}  // namespace simile::bench::gpu

int main(int argc, char** argv) {
  simile::bench::gpu::Options options;
  options.data.ks = {10, 100, 1'000};
  CLI::App app{"The GPU engine, measured and verified in one run"};
  simile::bench::gpu::AddOptions(app, options);
  CLI11_PARSE(app, argc, argv);
  return simile::bench::gpu::Main(options);
}
