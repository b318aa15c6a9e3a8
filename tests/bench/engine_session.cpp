#include "bench/engine_session.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "backend/cpu/calibration.h"
#include "backend/cpu/int8_backend.h"
#include "backend/cpu/int8_kernels.h"
#include "backend/cpu/scan_backend.h"
#include "backend/gpu_options.h"
#include "bench/plugin_of_bench.h"
#include "certificate/canonical_score.h"
#include "certificate/seeded_random.h"
#include "simile/clock.h"

namespace simile::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Searching for this many queries at once keeps the scan's workspace small.
constexpr std::size_t kExpectedAtOnce = 250;

double SecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

QuerySpec SpecOf(std::uint32_t k, const Filter& filter) {
  QuerySpec spec;
  spec.k = k;
  if (filter.mask) spec.mask = &*filter.mask;
  return spec;
}

// How many queries, from the first on, the rounds use.
std::size_t QueriesUsed(const EngineOptions& options, std::size_t query_count) {
  return std::min(query_count, options.batch_max() * options.rounds);
}

template <class Kernels>
absl::Status NoSuchIsa(const std::string& backend, const std::string& isa, const Kernels& kernels) {
  std::string names;
  for (const auto* kernel : kernels) {
    if (!names.empty()) names += ", ";
    names += kernel->isa;
  }
  const std::string why =
      isa == "amx" ? fmt::format(" ({})", backend::cpu::WhyNoAmx()) : std::string();
  return absl::InvalidArgumentError(fmt::format(
      "--isa {}: the {} backend cannot run it here{}; it can run {}", isa, backend, why, names));
}

// The plug-in beside this program, with the settings of a server. Its answers have no fallback.
absl::Status OpenGpu(const EngineOptions& bench, Engine& engine) {
  static const RealClock clock;
  const auto plugin = LoadPluginForDevice(PluginBeside());
  if (!plugin.ok()) return plugin.status();
  backend::GpuOptions options;
  options.blas_libraries = bench.blas;
  options.reserve_bytes = 0;  // nothing else uses the card
  options.batch_timeout = std::chrono::seconds(bench.batch_timeout_s);
  options.clock = &clock;
  absl::StatusOr<std::unique_ptr<Backend>> opened = absl::UnknownError("not opened");
  (*plugin)->open(&options, &opened);
  if (!opened.ok()) return opened.status();
  engine.made_by = *std::move(opened);
  return absl::OkStatus();
}

// "auto" calibrates as the server does, "int8" uses the default tuning; both are built before they
// are timed.
absl::Status MakeBackend(const std::string& isa, const EngineOptions& bench, Engine& engine) {
  if (engine.backend == "gpu") return OpenGpu(bench, engine);
  if (engine.backend.starts_with("scan")) {
    engine.one_at_a_time = engine.backend == "scan-single";
    const auto kernels = certificate::SupportedCanonicalKernels();
    const auto* kernel = isa.empty() ? kernels.front() : certificate::FindCanonicalKernel(isa);
    if (kernel == nullptr) return NoSuchIsa(engine.backend, isa, kernels);
    engine.made_by = backend::cpu::MakeScanBackend(*kernel, bench.threads);
    return absl::OkStatus();
  }
  backend::cpu::Int8Options options = backend::cpu::OptionsFor(isa);
  if (options.large == nullptr) {
    return NoSuchIsa("int8", isa, backend::cpu::SupportedInt8Kernels());
  }
  options.threads = bench.threads;
  if (!bench.int4) options.tuning.int4_from_code_bytes = std::numeric_limits<std::size_t>::max();
  options.foreground_bytes_max = std::numeric_limits<std::size_t>::max();
  if (engine.backend == "auto") options.tuning = MakeTuning(backend::cpu::Calibrate(options));
  engine.tuning = options.tuning;
  engine.made_by = backend::cpu::MakeInt8Backend(options);
  return absl::OkStatus();
}

}  // namespace

EngineSession::EngineSession(const EngineOptions& options, BenchData data)
    : data_(std::move(data)), metric_(options.metric_value()), threads_(options.threads) {}

absl::StatusOr<std::unique_ptr<EngineSession>> EngineSession::Create(const EngineOptions& options,
                                                                     BenchData data) {
  std::unique_ptr<EngineSession> session(new EngineSession(options, std::move(data)));
  const std::vector<std::string> isas =
      options.isas.empty() ? std::vector<std::string>{""} : options.isas;
  for (const std::string& backend : options.backends) {
    for (const std::string& isa : isas) {
      if (absl::Status status = session->AddEngine(options, backend, isa); !status.ok())
        return status;
    }
  }
  for (const double pass : options.filter_passes) session->AddFilter(pass, options.seed);
  if (absl::Status status = session->FindExpected(options); !status.ok()) return status;
  return session;
}

absl::Status EngineSession::AddEngine(const EngineOptions& options, const std::string& backend,
                                      const std::string& isa) {
  Engine engine;
  engine.name = isa.empty() ? backend : fmt::format("{}:{}", backend, isa);
  engine.backend = backend;
  if (absl::Status status = MakeBackend(isa, options, engine); !status.ok()) return status;
  const MatrixView rows = data_.rows.view();
  const ResidentPlan plan = engine.made_by->Plan({rows.row_count(), rows.dim(), metric_});
  engine.index_bytes = backend == "gpu" ? plan.device_bytes : plan.host_bytes;
  const auto start = SteadyClock::now();
  auto index = engine.made_by->MakeResident({rows, nullptr, metric_, 0});
  engine.build_s = SecondsSince(start);
  if (!index.ok()) return index.status();
  engine.index = *std::move(index);
  engines_.push_back(std::move(engine));
  return absl::OkStatus();
}

void EngineSession::AddFilter(double pass, std::uint64_t seed) {
  const std::size_t row_count = data_.rows.row_count();
  Filter filter{.pass = pass, .mask = std::nullopt, .allowed = row_count};
  if (pass < 1) {
    filter.mask.emplace(row_count);
    tests::SeededRandom random(seed);
    const auto bar = static_cast<std::uint64_t>(pass * 0x1p53);
    for (std::size_t row = 0; row < row_count; ++row) {
      if (random.Bits() >> 11 < bar) filter.mask->Allow(static_cast<Row>(row));
    }
    filter.allowed = filter.mask->AllowedCount();
  }
  filters_.push_back(std::move(filter));
}

absl::Status EngineSession::FindExpected(const EngineOptions& options) {
  const std::size_t query_count = data_.queries.row_count();
  const std::size_t used =
      options.uses_all_queries() ? query_count : QueriesUsed(options, query_count);
  const std::size_t count = std::min(options.verify_max().value_or(used), used);
  // Evenly spread over the queries used, including the first, which every case uses.
  place_of_.assign(query_count, kNotVerified);
  auto chosen = data::Matrix::Create(count, data_.queries.dim());
  if (!chosen.ok()) return chosen.status();
  for (std::size_t place = 0; place < count; ++place) {
    const std::size_t query = place * used / count;
    place_of_[query] = static_cast<std::uint32_t>(place);
    std::ranges::copy(data_.queries.view()[query], chosen->MutableRow(place));
  }

  const auto scan =
      backend::cpu::MakeScanBackend(*certificate::SupportedCanonicalKernels().front(), threads_);
  const auto index = scan->MakeResident({data_.rows.view(), nullptr, metric_, 0});
  if (!index.ok()) return index.status();
  for (const Filter& filter : filters_) {
    const std::vector<QuerySpec> specs(count, SpecOf(options.k_max(), filter));
    std::vector<std::vector<Hit>>& answers = expected_.emplace_back();
    for (std::size_t first = 0; first < count; first += kExpectedAtOnce) {
      const std::size_t size = std::min(kExpectedAtOnce, count - first);
      absl::Status status = (*index)->Search(
          {chosen->view().Slice(first, size), std::span(specs).first(size)}, result_);
      if (!status.ok()) return status;
      for (std::size_t query = 0; query < size; ++query) {
        answers.emplace_back(result_.Hits(query).begin(), result_.Hits(query).end());
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<double> EngineSession::Search(const Run& run) {
  if (!engines_[run.engine].one_at_a_time) return SearchAtOnce(run);
  double seconds = 0;
  for (std::size_t query = 0; query < run.batch; ++query) {
    Run single = run;
    single.batch = 1;
    single.first_query += query;
    const absl::StatusOr<double> taken = SearchAtOnce(single);
    if (!taken.ok()) return taken;
    seconds += *taken;
  }
  return seconds;
}

absl::StatusOr<double> EngineSession::SearchAtOnce(const Run& run) {
  const Filter& filter = filters_[run.filter];
  specs_.assign(run.batch, SpecOf(run.k, filter));
  const SearchBatch batch{data_.queries.view().Slice(run.first_query, run.batch), specs_};
  const SegmentIndex& index = *engines_[run.engine].index;
  const auto start = SteadyClock::now();
  absl::Status status = index.Search(batch, result_);
  const double seconds = SecondsSince(start);
  if (status.ok()) status = Compare(run);
  if (!status.ok()) return status;
  return seconds;
}

absl::Status EngineSession::Compare(const Run& run) const {
  for (std::size_t query = 0; query < run.batch; ++query) {
    const std::uint32_t place = place_of_[run.first_query + query];
    if (place == kNotVerified) continue;
    const std::vector<Hit>& all = expected_[run.filter][place];
    const std::span<const Hit> expected =
        std::span(all).first(std::min<std::size_t>(run.k, all.size()));
    const std::span<const Hit> hits = result_.Hits(query);
    const auto [hit, wanted] = std::ranges::mismatch(hits, expected);
    if (hit == hits.end() && wanted == expected.end()) continue;
    const auto describe = [](auto at, auto end) {
      return at == end ? std::string("nothing") : fmt::format("row {} with {}", at->row, at->score);
    };
    return absl::InternalError(fmt::format(
        "the answers are wrong, so no times are printed: {}, batch {}, k {}, query {}, rank "
        "{}: {} where the plain scan has {}",
        engines_[run.engine].name, run.batch, run.k, run.first_query + query, hit - hits.begin(),
        describe(hit, hits.end()), describe(wanted, expected.end())));
  }
  return absl::OkStatus();
}

}  // namespace simile::bench
