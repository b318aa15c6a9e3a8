#include "app/wiring.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/access_file.h"
#include "app/config/config_check.h"
#include "app/server_metrics.h"
#include "app/start_output.h"
#include "app/tuning/tuning.h"
#include "backend/cpu/calibration.h"
#include "base/atomic_file.h"
#include "base/error_detail.h"
#include "base/loopback.h"
#include "base/memory_pages.h"
#include "base/threads.h"
#include "observe/build_info.h"
#include "observe/metric_samples.h"
#include "observe/process_metrics.h"
#include "service/calls/call.h"
#include "service/requests/request_fields.h"
#include "service/search_pipeline.h"

namespace simile::app {
namespace {

std::vector<std::pair<std::string, std::uint64_t>> UnfitValues(const data::PayloadTable& payload) {
  std::vector<std::pair<std::string, std::uint64_t>> unfit;
  for (const data::FieldInfo& field : payload.fields()) {
    const std::uint64_t count = field.values.UnfitFor(field.type).count;
    if (count > 0) unfit.emplace_back(field.name, count);
  }
  return unfit;
}

std::vector<observe::CollectionReading> ReadCollections(const engine::SnapshotStore& store,
                                                        const service::CollectionChanges& changes) {
  std::vector<observe::CollectionReading> readings;
  for (const engine::CollectionStatus& status : store.List()) {
    if (status.state == engine::CollectionState::kFailed) {
      observe::CollectionReading& failed = readings.emplace_back();
      failed.name = status.name;
      failed.serves = false;
      failed.last_load_failed = true;
    }
    if (status.snapshot == nullptr) continue;
    const engine::ResidentBytes bytes = engine::SumBytes(*status.snapshot);
    readings.push_back({status.name,
                        status.snapshot->row_count(),
                        status.snapshot->loaded_at,
                        {{"vectors", bytes.vectors},
                         {"payload", bytes.payload},
                         {"users", bytes.users},
                         {"index", bytes.index},
                         {"device", bytes.device}},
                        true,
                        changes.LastLoadFailed(status.name),
                        UnfitValues(status.snapshot->dataset->payload)});
  }
  return readings;
}

// The socket on which systemd expects the state of a service of Type=notify; empty for none.
std::string NotifySocket() {
  const char* const name = std::getenv("NOTIFY_SOCKET");
  return name == nullptr ? "" : name;
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

// The number of threads that build small replies. Building takes a small part of the time of the
// passes, so a few threads are enough on any machine.
unsigned CompleterCount() { return std::clamp(base::UsableCpuCount() / 4, 1U, 4U); }

// The number of loops. A loop carries the calls of several processors that search.
std::size_t IoThreads(std::size_t configured) {
  constexpr unsigned kMost = 8;
  if (configured > 0) return configured;
  const unsigned cpus = base::UsableCpuCount();
  return cpus <= 3 ? 1 : std::clamp(cpus / 4, 1U, kMost);
}

IdleMemory::Reading ReadProcess(const Clock& clock) {
  const observe::ProcessStat stat = observe::ReadProcessStat().value_or(observe::ProcessStat());
  return {clock.Now(), std::chrono::duration_cast<Clock::Duration>(observe::CpuTime(stat)),
          observe::ResidentBytes(stat)};
}

// With an access file the callers' roles decide about changes and administration.
bool HasAccessFile(const Config& config) { return !config.access_file.empty(); }

observe::ScrapedMetric ExpiryMetric(const net::TlsContent& content) {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(content.expires_at.time_since_epoch());
  return {.name = "simile_certificate_expiry_timestamp_seconds",
          .help = "When the server's certificate expires.",
          .is_counter = false,
          .labels = {},
          .value = static_cast<double>(seconds.count())};
}

// The time of a load in which the GPU measures its passes.
constexpr std::chrono::milliseconds kChoiceTime{500};

// Diagnose promises to take ten seconds at most; the rest is for its reply.
constexpr std::chrono::seconds kExaminationLimit{8};

}  // namespace

absl::StatusOr<std::unique_ptr<App>> App::Create(const Config& config, const observe::Logger& log,
                                                 const Clock* clock) {
  for (const CollectionConfig& collection : config.collections) {
    const absl::Status named =
        service::CheckCollectionName({"collection"}, collection.name, config.limits);
    if (!named.ok()) return named;
  }
  const absl::Status access = CheckAccess(config);
  if (!access.ok()) return access;
  auto base = std::make_unique<BaseServices>(config, log, clock);
  std::shared_ptr<net::Tls> tls;
  if (!config.tls.certificate.empty()) {
    auto created = net::Tls::Create(config.tls, base->clock);
    if (!created.ok()) return created.status();
    tls = *std::move(created);
  }
  std::shared_ptr<const service::AccessPolicy> policy;
  if (!config.access_file.empty()) {
    auto read = ReadAccessFile(config.access_file);
    if (!read.ok()) return read.status();
    policy = *std::move(read);
  }
  const TuningInForce tuning = EnsureTuning(config, backend::cpu::Calibrate, RealClock());
  backend::RegistryOptions options = tuning.Over(config.backend);
  options.gpu.clock = &base->clock;
  if (config.tuning == Tuning::kAuto) {
    options.gpu.choice_time = kChoiceTime;
    options.gpu.choice_store = &base->gpu_choices;
  }
  options.gpu_faults = base->gpu_watch.EarlierFaults();
  if (!options.gpu_faults.empty()) base->metrics.SetGpuLostAt(options.gpu_faults.back().at);
  options.gpu_observer = [watch = &base->gpu_watch](const backend::GpuEvent& event) {
    watch->On(event);
  };
  auto chosen = backend::ChooseBackend(options);
  if (!chosen.ok()) return chosen.status();
  std::unique_ptr<App> app(new App(std::move(base), *std::move(chosen), std::move(tls)));
  app->access_.SetPolicy(std::move(policy));
  LogTuning(tuning, app->log_);
  const absl::Status started = app->Start();
  if (!started.ok()) return started;
  return app;
}

App::BaseServices::BaseServices(const Config& given, const observe::Logger& given_log,
                                const Clock* given_clock)
    : config(given),
      clock(given_clock == nullptr ? real_clock : *given_clock),
      log(given_log),
      failure_lines(log, clock),
      audit(log, clock),
      metrics(observe::GetBuildInfo()),
      gpu_watch(config, clock, log, metrics),
      gpu_choices(config.tuning_cache, DriverFor(config.backend.preference),
                  GpuChoiceFile::LoadLog{log, config.limits.batch_queries_max}),
      readiness(config.ready_file, NotifySocket(), log) {}

App::App(std::unique_ptr<BaseServices> base, backend::Chosen chosen, std::shared_ptr<net::Tls> tls)
    : base_(std::move(base)),
      backend_(std::move(chosen.backend)),
      gpu_left_alone_(chosen.gpu_left_alone),
      gpu_bus_id_(std::move(chosen.gpu_bus_id)),
      serving_backend_{*backend_, std::move(chosen.reason)},
      publisher_({config_.limits, config_.memory_bytes_max}, *backend_, store_, clock_),
      executor_(
          {.queue_queries_max = config_.limits.queue_queries_max,
           .batch_queries_max = config_.limits.batch_queries_max,
           .queue_bytes_max = config_.limits.queue_bytes_max,
           .completers = CompleterCount()},
          {backend_->info(), serving_backend_.reason}, clock_,
          [this](const engine::Executor::BatchReport& report) {
            metrics_.RecordBatch(report.backend, report.batch_size, report.compute_us,
                                 report.queue_us);
          },
          [this] { return backend_->device_memory(); }),
      changes_({config_.changes_allowed || HasAccessFile(config_), config_.data_root,
                config_.min_overlap, config_.collections_required},
               {publisher_, store_, change_queue_, metrics_, log_, clock_, config_.limits}),
      examination_([this] { return DoctorOptions(); }, kExaminationLimit),
      admin_{.backend = serving_backend_,
             .limits = config_.limits,
             .clock = clock_,
             .changes_allowed = config_.changes_allowed || HasAccessFile(config_),
             .admin_allowed = config_.admin_allowed || HasAccessFile(config_),
             .started_at = clock_.WallNow(),
             .started = clock_.Now(),
             .read_metrics =
                 [this](const service::PermittedServer&) {
                   return observe::ReadMetrics(collectables_);
                 },
             .examination = examination_},
      tls_(std::move(tls)),
      access_reload_(config_.access_file, tls_, access_, clock_, log_, base_->audit),
      services_({clock_, log_, base_->failure_lines, base_->audit, metrics_, store_, executor_,
                 changes_, serving_backend_, admin_, health_, config_.limits, access_,
                 config_.log_requests, config_.reflection}) {
  metrics_.SetQueueCapacity(config_.limits.queue_queries_max);
  metrics_.SetGpuRequested(config_.backend.preference != backend::Preference::kCpu);
  metrics_.SetBackendActive(backend_->info().name);
  if (config_.backend.preference == backend::Preference::kCpu) return;
  GpuSensors::Options sensors;
  sensors.device = static_cast<unsigned>(config_.backend.gpu.device);
  sensors.bus_id = gpu_bus_id_;
  gpu_sensors_ = std::make_unique<GpuSensors>(std::move(sensors), clock_, log_);
}

App::~App() {
  every_second_.reset();
  metrics_endpoint_.reset();  // it reads the server's counts
  if (server_ == nullptr) return;
  changes_.Stop();                               // answers the calls that wait for a change
  examination_.Stop();                           // answers the calls that wait for its findings
  health_.EndWatches();                          // answers the calls that watch
  server_->Drain(std::chrono::milliseconds(0));  // takes no new calls
  change_queue_.Stop();                          // waits for a running load
  server_.reset();                               // waits for the calls in flight
}

absl::Status App::Start() {
  // Before the server's port, so that the error names both ports where both are taken.
  std::optional<absl::StatusOr<net::ListenSocket>> metrics_socket;
  if (config_.metrics_enabled) {
    metrics_socket = net::Listen(config_.metrics_listen, config_.metrics_port,
                                 {" for metrics", "--metrics-listen", "--metrics-port"});
  }
  const absl::Status metrics_bound = metrics_socket ? metrics_socket->status() : absl::OkStatus();
  auto server = net::Server::Start(
      {config_.listen, config_.port, IoThreads(config_.io_threads), tls_,
       [this] { return executor_.RunHere(service::SearchPipeline::arrivals()); }},
      config_.limits, {services_.methods(), clock_, metrics_, log_});
  if (!server.ok() && !metrics_bound.ok()) {
    return base::WithMessage(server.status(),
                             fmt::format("{}; also {}", std::string(server.status().message()),
                                         std::string(metrics_bound.message())));
  }
  if (!server.ok()) return server.status();
  if (!metrics_bound.ok()) return metrics_bound;
  server_ = *std::move(server);
  // Only now: until the port is bound, the file may belong to a server that still runs on the port.
  const absl::Status removed = base_->readiness.RemoveStaleFile();
  if (!removed.ok()) return removed;
  store_.SetListener([this](const std::string& name, bool serving) {
    const absl::Status told =
        service::Guarded([&] { health_.SetCollectionServing(name, serving); });
    if (!told.ok()) log_.Error("health not updated", {{"collection", name}});
  });
  for (const CollectionConfig& collection : config_.collections) {
    health_.SetCollectionServing(collection.name, false);
  }
  collectables_ = metrics_.Collectables();
  collectables_.push_back(observe::MakeScrapeCollector(Sources()));
  if (metrics_socket) {
    metrics_endpoint_ = std::make_unique<net::MetricsEndpoint>(
        **std::move(metrics_socket),
        net::HttpPages{[this] { return observe::FormatMetrics(collectables_); },
                       [this] { return UnreadyReason(); },
                       [this] { return FailedCollections(store_.List()); }},
        clock_, net::MetricsEndpointOptions());
  }
  access_reload_.Look();
  WarnOfOpenAddress();
  server_->Accept();
  every_second_.emplace([this] { CleanUp(); });
  if (config_.port_file.empty()) return absl::OkStatus();
  const absl::Status written =
      base::ReplaceFile(config_.port_file, fmt::format("{}\n", port()), {.mode = 0644});
  if (written.ok()) return written;
  return {written.code(), fmt::format("port file {}", std::string(written.message()))};
}

observe::ScrapeSources App::Sources() {
  return {
      // The plain pointer, because server_ is null while the server's destructor waits for calls.
      .connections_open = [server =
                               server_.get()] { return std::uint64_t{server->CountConnections()}; },
      .collections = [this] { return ReadCollections(store_, changes_); },
      .device_memory = [this] { return backend_->device_memory(); },
      .others =
          [this] {
            std::vector<observe::ScrapedMetric> metrics =
                QueueMetrics(executor_.counts(), services_.counts(), config_.limits);
            metrics.push_back({.name = "simile_log_lines_dropped_total",
                               .help = "Lines of the log that standard error did not take.",
                               .is_counter = true,
                               .labels = {},
                               .value = static_cast<double>(log_.lines_dropped())});
            std::ranges::move(refused_callers_.Metrics(), std::back_inserter(metrics));
            if (tls_) metrics.push_back(ExpiryMetric(tls_->content()));
            if (gpu_sensors_)
              std::ranges::move(gpu_sensors_->Metrics(), std::back_inserter(metrics));
            return metrics;
          }};
}

absl::Status App::LoadCollections(const Loaded& loaded) {
  if (LacksDataRoot(config_)) {
    log_.Warn("collections.data_root is not a folder: loads fail until it is",
              {{"folder", config_.data_root.string()}});
  }
  absl::Status last_error;
  bool serves_any = config_.collections.empty();
  for (const CollectionConfig& collection : config_.collections) {
    const Clock::TimePoint began = clock_.Now();
    const auto snapshot = changes_.LoadAtStart(collection.name, collection.folder);
    if (snapshot.ok()) {
      serves_any = true;
      if (loaded) loaded(**snapshot, clock_.Now() - began);
      continue;
    }
    last_error = {snapshot.status().code(), LoadErrorText(collection, snapshot.status())};
    if (config_.collections_required) return last_error;
    log_.Error("collection not loaded: the server goes on without it",
               {{"collection", collection.name}, {"error", std::string(last_error.message())}});
  }
  if (!serves_any) return last_error;
  refused_callers_.Look();
  health_.SetServing(true);
  return base_->readiness.Announce(address());
}

void App::ReloadChanged() {
  std::vector<std::string> reloaded;
  std::vector<std::string> failed;
  std::vector<std::string> unfit;
  std::vector<std::string> overlaps;
  std::uint64_t unchanged = 0;
  for (const CollectionConfig& collection : config_.collections) {
    const auto status = store_.Get(collection.name);
    if (!status.ok()) continue;  // unloaded by a caller
    engine::SnapshotPtr before;
    const auto after = status->state == engine::CollectionState::kFailed
                           ? changes_.LoadAtStart(collection.name, collection.folder)
                           : changes_.ReloadServed(collection.name, &before);
    if (!after.ok() && base::ReasonOf(after.status()) == base::ErrorReason::kStopping) return;
    if (!after.ok() || *after != before) {
      base_->audit.Write(
          {{"change", "reload by SIGHUP"},
           {"result", after.ok() ? "done" : base::InfoOf(base::ReasonOf(after.status())).name},
           {"collection", collection.name}});
    }
    if (!after.ok()) {
      log_.Warn("collection not reloaded", {{"collection", collection.name},
                                            {"error", std::string(after.status().message())}});
      failed.push_back(collection.name);
    } else if (*after == before) {
      ++unchanged;
    } else {
      reloaded.push_back(collection.name);
      if (const auto overlap = (*after)->overlap) {
        overlaps.push_back(fmt::format("{}: {:.1f} %", collection.name, 100 * *overlap));
      }
      const std::string text = data::UnfitText((*after)->dataset->payload);
      if (!text.empty()) unfit.push_back(fmt::format("{}: {}", collection.name, text));
    }
  }
  log_.Info("reloaded what changed on disk",
            {{"reloaded", fmt::format("{}", fmt::join(reloaded, ", "))},
             {"unchanged", unchanged},
             {"failed", fmt::format("{}", fmt::join(failed, ", "))},
             {"unfit", fmt::format("{}", fmt::join(unfit, ", "))},
             {"overlap", fmt::format("{}", fmt::join(overlaps, ", "))}});
}

void App::WarnOfOpenAddress() const {
  if (base::IsLoopback(config_.listen) || tls_ != nullptr) return;
  log_.Warn(
      HasAccessFile(config_)
          ? "tokens and answers cross the network unencrypted, unless a proxy in front "
            "encrypts them (server.plaintext_tokens_allowed)"
          : "anyone who reaches this address can search, unencrypted; see server.access_file and "
            "server.tls_certificate (docs/access.md)",
      {{"address", address()}});
}

void App::CleanUp() {
  access_reload_.Look();
  refused_callers_.Look();
  base_->failure_lines.ReportLeftOut();
  base_->audit.ReportLeftOut();
  std::vector<engine::SnapshotPtr> served;
  for (const engine::CollectionStatus& status : store_.List()) {
    if (status.snapshot != nullptr) served.push_back(status.snapshot);
  }
  search_times_.Look(served);
  if (!idle_memory_.IsDue(ReadProcess(clock_))) return;
  base::ReturnFreedMemory();
  idle_memory_.Returned(ReadProcess(clock_).resident_bytes);
}

doctor::Options App::DoctorOptions() const {
  const ServedBy now = serving_backend_.Now();
  doctor::Options options;
  options.machine = doctor::ThisMachine();
  options.backend = config_.backend;
  options.backend.gpu_faults = base_->gpu_watch.EarlierFaults();
  options.journal_file = config_.gpu_fault_journal.string();
  options.server = doctor::ServerState{.gpu_answers = now.info.name == "gpu",
                                       .gpu_lost = gpu_lost(),
                                       .gpu_left_alone = gpu_left_alone_,
                                       .gpu_bus_id = gpu_bus_id_,
                                       .reason = now.reason};
  return options;
}

std::string App::UnreadyReason() const {
  switch (health_.state()) {
    case service::ServingState::kServing:
      return "";
    case service::ServingState::kDraining:
      return "draining";
    case service::ServingState::kStarting:
      break;
  }
  const std::string loading = LoadingText(store_.List());
  return loading.empty() ? "starting" : loading;
}

bool App::AnnounceDrain() {
  const bool was_serving = health_.AnnounceDrain();
  base_->readiness.Withdraw();
  return was_serving;
}

bool App::Drain() {
  AnnounceDrain();
  changes_.Stop();
  examination_.Stop();
  health_.EndWatches();
  const bool drained = server_->Drain(config_.limits.drain_timeout);
  base_->failure_lines.ReportLeftOut();
  base_->audit.ReportLeftOut();
  return drained;
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
