#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "app/config.h"
#include "app/gpu_watch.h"
#include "engine/change_queue.h"
#include "engine/executor.h"
#include "engine/publisher.h"
#include "engine/snapshot_store.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "observe/metrics_endpoint.h"
#include "observe/scrape_sources.h"
#include "service/collection_changes.h"
#include "service/collection_message.h"
#include "service/rpc_services.h"
#include "service/server.h"
#include "simile/clock.h"

namespace simile::app {

// The composition root: makes every part of the server from a configuration and connects them; the
// program and the tests run the same one. Parts are members in the order of the layers, so that
// each is destroyed before what it refers to.
class App {
 public:
  // Measures the processor unless that is known (tuning.h), builds everything and begins to answer:
  // health says NOT_SERVING and the configured collections are not there until LoadCollections has
  // run. Writes the port file. Errors: those of ChooseBackend, Server::Start,
  // MetricsEndpoint::Start and WritePortFile;
  //         kInvalidArgument for a collection name that cannot be one.
  static absl::StatusOr<std::unique_ptr<App>> Create(const Config& config);
  ~App();  // stops at once; waits for a load under way
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  // Loads the configured collections one after another and, when all serve, says so in health.
  // Blocking; called once.
  //   loaded  called after each with its snapshot and how long it took; may be empty
  // Errors: the first failure, with the collection's name in front.
  using Loaded = std::function<void(const engine::Snapshot& snapshot, Clock::Duration took)>;
  absl::Status LoadCollections(const Loaded& loaded);

  // Stops politely within limits.drain_timeout: see Server::Drain.
  bool Drain();

  std::uint16_t port() const { return server_->port(); }
  std::string address() const { return server_->address(); }
  // Nothing when metrics are off.
  std::optional<std::uint16_t> metrics_port() const;

  // Who answers now, and why.
  ServedBy backend() const { return serving_backend_.Now(); }
  bool gpu_lost() const { return backend_->stand_in() != nullptr; }
  // Readable from the moment that a lost GPU is to be met by a restart: see GpuWatch.
  int restart_fd() const { return ground_->gpu_watch.restart_fd(); }
  const engine::SnapshotStore& store() const { return store_; }
  const observe::Logger& log() const { return ground_->log; }

 private:
  // What everything else stands on, the backend included.
  struct Ground {
    explicit Ground(const Config& given);

    const Config config;
    const RealClock clock;
    const observe::Logger log;
    observe::Metrics metrics;
    GpuWatch gpu_watch;
  };
  App(std::unique_ptr<Ground> ground, backend::Chosen chosen);

  absl::Status Start();
  observe::ScrapeSources Sources();

  const std::unique_ptr<Ground> ground_;
  const Config& config_ = ground_->config;
  const Clock& clock_ = ground_->clock;
  const observe::Logger& log_ = ground_->log;
  observe::Metrics& metrics_ = ground_->metrics;
  const std::unique_ptr<Backend> backend_;
  const service::ServingBackend serving_backend_;
  engine::SnapshotStore store_{clock_};
  engine::Publisher publisher_;
  engine::Executor executor_;
  engine::ChangeQueue change_queue_;
  service::CollectionChanges changes_;
  service::RpcServices services_;
  std::unique_ptr<service::Server> server_;
  std::unique_ptr<observe::MetricsEndpoint> metrics_endpoint_;
};

}  // namespace simile::app
