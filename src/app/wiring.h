#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "app/background_work.h"
#include "app/config/config.h"
#include "app/gpu/gpu_watch.h"
#include "app/readiness.h"
#include "app/reloads.h"
#include "app/server_metrics.h"
#include "app/tuning/gpu_choice_file.h"
#include "doctor/examination.h"
#include "engine/queue/executor.h"
#include "engine/queue/search_times.h"
#include "engine/snapshots/change_queue.h"
#include "engine/snapshots/publisher.h"
#include "engine/snapshots/snapshot_store.h"
#include "net/metrics_endpoint.h"
#include "net/server.h"
#include "observe/audit_log.h"
#include "observe/failure_lines.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "observe/scrape_sources.h"
#include "service/access/access_control.h"
#include "service/admin_handlers.h"
#include "service/calls/health.h"
#include "service/changes/collection_changes.h"
#include "service/grpc/rpc_services.h"
#include "service/replies/collection_message.h"
#include "service/self_examination.h"
#include "simile/clock.h"

namespace simile::app {

// The composition root: builds every part of the server from a configuration and connects them, for
// the program and the tests alike. Members are in the order of the layers, so that each is
// destroyed before what it refers to.
class App {
 public:
  // Removes an earlier server's ready file, measures the processor if needed (tuning.h), builds
  // everything, writes the port file and starts to answer. Until LoadCollections has run, health is
  // NOT_SERVING and the collections are missing.
  // Errors: those of ChooseBackend, Server::Start, Listen, ReplaceFile, ReadTlsFiles,
  //         ReadAccessFile, CheckAccess and Readiness::RemoveStaleFile; kInvalidArgument for a
  //         malformed collection name.
  //   log    of the process; borrowed for the life of the server
  //   clock  of a test that sets the time; borrowed too. The real one when null
  static absl::StatusOr<std::unique_ptr<App>> Create(const Config& config,
                                                     const observe::Logger& log,
                                                     const Clock* clock = nullptr);
  ~App();  // stops at once; waits for a running load
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  // Loads the configured collections one after another, then sets health to SERVING and announces
  // that (readiness.h). Blocking; called once.
  //   loaded  called after each with its snapshot and how long it took; may be empty
  // Errors: the first failure, with the collection's name in front; those of Readiness::Announce.
  using Loaded = std::function<void(const engine::Snapshot& snapshot, Clock::Duration took)>;
  absl::Status LoadCollections(const Loaded& loaded);

  // Reloads each configured collection that is served and whose files have changed, one after
  // another, as a Reload over the wire does. Logs the results. Blocking; ends soon after Drain is
  // called.
  void ReloadChanged();

  // Announces that the server stops, while it still takes calls: see Health::AnnounceDrain and
  // Readiness::Withdraw. Returns whether the server had announced before that it serves.
  bool AnnounceDrain();
  // Calls AnnounceDrain, then waits up to limits.drain_timeout for running calls: see
  // Server::Drain. Returns whether all calls ended in time. Calls that wait for a change of a
  // collection are answered at once, since the result of the change would be lost.
  bool Drain();

  std::uint16_t port() const { return server_->port(); }
  std::string address() const { return server_->address(); }
  // Nothing when metrics are off.
  std::optional<std::uint16_t> metrics_port() const;
  std::optional<std::string> metrics_address() const;

  // The backend that answers now, and why.
  ServedBy backend() const { return serving_backend_.Now(); }
  bool gpu_lost() const { return backend_->fallback() != nullptr; }
  // Becomes readable when a lost GPU requires a restart: see GpuWatch.
  int restart_fd() const { return base_->gpu_watch.restart_fd(); }
  const engine::SnapshotStore& store() const { return store_; }
  const observe::Logger& log() const { return base_->log; }

 private:
  // What everything else uses, the backend included, so it is built first.
  struct BaseServices {
    BaseServices(const Config& given, const observe::Logger& given_log, const Clock* given_clock);

    const Config config;
    const RealClock real_clock;
    const Clock& clock;
    const observe::Logger& log;
    observe::FailureLines failure_lines;
    observe::AuditLog audit;
    observe::Metrics metrics;
    GpuWatch gpu_watch;
    GpuChoiceFile gpu_choices;
    Readiness readiness;
  };
  App(std::unique_ptr<BaseServices> base, backend::Chosen chosen, std::shared_ptr<net::Tls> tls);

  absl::Status Start();
  void WarnOfOpenAddress() const;
  void CleanUp();  // the work of every second
  // What the doctor is to examine in this server, and its state now.
  doctor::Options DoctorOptions() const;
  std::string UnreadyReason() const;  // for /readyz
  observe::ScrapeSources Sources();   // REQUIRES: server_ is set.

  const std::unique_ptr<BaseServices> base_;
  const Config& config_ = base_->config;
  const Clock& clock_ = base_->clock;
  const observe::Logger& log_ = base_->log;
  observe::Metrics& metrics_ = base_->metrics;
  const std::unique_ptr<Backend> backend_;
  const bool gpu_left_alone_;     // after too many losses
  const std::string gpu_bus_id_;  // of the chosen GPU; empty for none
  const service::ServingBackend serving_backend_;
  engine::SnapshotStore store_{clock_};
  engine::Publisher publisher_;
  engine::Executor executor_;
  engine::ChangeQueue change_queue_;
  service::CollectionChanges changes_;
  service::SelfExamination examination_;
  const service::AdminParts admin_;
  service::Health health_;
  const std::shared_ptr<net::Tls> tls_;  // null: not encrypted
  service::AccessControl access_{clock_};
  AccessReload access_reload_;  // used by the thread of every_second_
  RefusedCallers refused_callers_{store_, access_, log_};
  service::RpcServices services_;
  std::unique_ptr<GpuSensors> gpu_sensors_;  // null when the configuration asks for the CPU
  std::vector<std::shared_ptr<prometheus::Collectable>> collectables_;  // set before calls come
  std::unique_ptr<net::Server> server_;
  std::unique_ptr<net::MetricsEndpoint> metrics_endpoint_;
  IdleMemory idle_memory_;                               // used by the thread of every_second_
  engine::SearchTimes search_times_{executor_, clock_};  // used by that thread, too
  std::optional<EverySecond> every_second_;
};

}  // namespace simile::app
