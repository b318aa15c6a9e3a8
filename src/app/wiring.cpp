#include "app/wiring.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/config_check.h"
#include "app/tuning.h"
#include "backend/cpu/calibration.h"
#include "base/atomic_file.h"
#include "observe/build_info.h"
#include "observe/metrics_text.h"
#include "service/collection_name.h"
#include "service/guarded.h"

namespace simile::app {
namespace {

std::vector<observe::CollectionReading> ReadCollections(const engine::SnapshotStore& store) {
  std::vector<observe::CollectionReading> readings;
  for (const engine::CollectionStatus& status : store.List()) {
    if (status.snapshot == nullptr) continue;
    readings.push_back({status.name, status.snapshot->row_count(), status.snapshot->loaded_at});
  }
  return readings;
}

void LogTuning(const TuningInForce& tuning, const observe::Logger& log) {
  if (!tuning.measured) return;
  const std::uint64_t took_us = Microseconds(tuning.took);
  const std::string problem(tuning.cache.message());
  if (tuning.cache.ok()) {
    log.Info("measured the processor", {{"took_us", took_us}, {"complete", tuning.complete}});
  } else if (absl::IsInvalidArgument(tuning.cache)) {
    log.Warn("measured the processor; the result is not kept",
             {{"took_us", took_us}, {"reason", problem}});
  } else {
    // The home folder is read-only or missing, which is normal in a container.
    log.Info("measured the processor; the result is not kept",
             {{"took_us", took_us}, {"reason", problem}});
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<App>> App::Create(const Config& config) {
  for (const CollectionConfig& collection : config.collections) {
    const absl::Status named =
        service::CheckCollectionName("collection", collection.name, config.limits);
    if (!named.ok()) return named;
  }
  const TuningInForce tuning = EnsureTuning(config, backend::cpu::Calibrate, RealClock());
  auto base = std::make_unique<BaseServices>(config);
  backend::RegistryOptions options = config.backend;
  options.tuning = tuning.tuning;
  options.gpu.clock = &base->clock;
  options.gpu_faults = base->gpu_watch.EarlierFaults();
  options.gpu_observer = [watch = &base->gpu_watch](const backend::GpuEvent& event) {
    watch->On(event);
  };
  auto chosen = backend::ChooseBackend(options);
  if (!chosen.ok()) return chosen.status();
  std::unique_ptr<App> app(new App(std::move(base), *std::move(chosen)));
  LogTuning(tuning, app->log_);
  const absl::Status started = app->Start();
  if (!started.ok()) return started;
  return app;
}

App::BaseServices::BaseServices(const Config& given)
    : config(given),
      log({config.log_format, config.log_level, nullptr}),
      metrics(observe::GetBuildInfo()),
      gpu_watch(config, clock, log, metrics) {}

App::App(std::unique_ptr<BaseServices> base, backend::Chosen chosen)
    : base_(std::move(base)),
      backend_(std::move(chosen.backend)),
      serving_backend_{*backend_, std::move(chosen.reason)},
      publisher_({config_.limits, config_.memory_bytes_max}, *backend_, store_, clock_),
      executor_(
          {config_.limits.queue_queries_max, config_.limits.batch_queries_max},
          {backend_->info(), serving_backend_.reason}, clock_,
          [this](const engine::Executor::BatchReport& report) {
            metrics_.RecordBatch(report.backend, report.batch_size, report.compute_us,
                                 report.queue_us);
          },
          [this] { return backend_->device_memory(); }),
      changes_({config_.changes_allowed, config_.data_root},
               {publisher_, store_, change_queue_, metrics_, log_, clock_, config_.limits}),
      admin_{serving_backend_, config_.limits, config_.changes_allowed, clock_.WallNow()},
      services_({clock_, log_, metrics_, store_, executor_, changes_, serving_backend_, admin_,
                 config_.limits, config_.log_requests}) {
  metrics_.SetGpuRequested(config_.backend.preference != backend::Preference::kCpu);
  metrics_.SetBackendActive(backend_->info().name);
}

App::~App() {
  metrics_endpoint_.reset();  // it reads the server's counts
  if (server_ == nullptr) return;
  changes_.Stop();                               // answers the calls that wait for a change
  server_->Drain(std::chrono::milliseconds(0));  // refuses new calls
  change_queue_.Stop();                          // waits for a running load
  server_.reset();                               // waits for the calls in flight
}

absl::Status App::Start() {
  auto server =
      net::Server::Start({config_.listen, config_.port, config_.reflection}, config_.limits,
                         services_.services(), services_.gate(), metrics_, log_);
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  store_.SetListener([this](const std::string& name, bool serving) {
    const absl::Status told = service::Guarded([&] {
      server_->SetCollectionServing(name, serving);
      return absl::OkStatus();
    });
    if (!told.ok()) log_.Error("health not updated", {{"collection", name}});
  });
  for (const CollectionConfig& collection : config_.collections) {
    server_->SetCollectionServing(collection.name, false);
  }
  if (config_.metrics_enabled) {
    auto collectables = metrics_.Collectables();
    collectables.push_back(observe::MakeScrapeCollector(Sources()));
    auto socket = net::Listen(config_.metrics_listen, config_.metrics_port,
                              {" for metrics", "--metrics-listen", "--metrics-port"});
    if (!socket.ok()) return socket.status();
    metrics_endpoint_ = std::make_unique<net::MetricsEndpoint>(
        *std::move(socket),
        [collectables = std::move(collectables)] { return observe::MetricsText(collectables); },
        clock_, net::MetricsEndpointOptions());
  }
  server_->Accept();
  if (config_.port_file.empty()) return absl::OkStatus();
  const absl::Status written =
      base::ReplaceFile(config_.port_file, fmt::format("{}\n", port()), {.mode = 0644});
  if (written.ok()) return written;
  return {written.code(), fmt::format("port file {}", std::string(written.message()))};
}

observe::ScrapeSources App::Sources() {
  return {.queue_depth = [this] { return executor_.counts().queue_depth; },
          .connections_open = [this] { return std::uint64_t{server_->CountConnections()}; },
          .collections = [this] { return ReadCollections(store_); },
          .device_memory = [this] { return backend_->device_memory(); }};
}

absl::Status App::LoadCollections(const Loaded& loaded) {
  for (const CollectionConfig& collection : config_.collections) {
    const Clock::TimePoint began = clock_.Now();
    const auto snapshot = changes_.LoadAtStart(collection.name, collection.folder);
    if (!snapshot.ok()) {
      return {snapshot.status().code(), LoadErrorText(collection, snapshot.status())};
    }
    if (loaded) loaded(**snapshot, clock_.Now() - began);
  }
  server_->SetServing(true);
  return absl::OkStatus();
}

bool App::Drain() {
  changes_.Stop();
  return server_->Drain(config_.limits.drain_timeout);
}

std::optional<std::uint16_t> App::metrics_port() const {
  if (metrics_endpoint_ == nullptr) return std::nullopt;
  return metrics_endpoint_->port();
}

std::optional<std::string> App::metrics_address() const {
  if (metrics_endpoint_ == nullptr) return std::nullopt;
  return metrics_endpoint_->address();
}

}  // namespace simile::app
