#pragma once

#include <memory>
#include <vector>

#include "engine/executor.h"
#include "engine/snapshot_store.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "service/call_gate.h"
#include "service/collection_changes.h"
#include "service/collection_message.h"
#include "simile/clock.h"
#include "simile/limits.h"

namespace grpc {
class Service;
}

namespace simile::service {

// The services of simile.v1, ready to be registered: the one place where a method meets its
// handler. Owned by wiring; must outlive the server it is registered with, as what it refers to
// must outlive it.
class RpcServices {
 public:
  struct Parts {
    const Clock& clock;
    const observe::Logger& log;
    observe::Metrics& metrics;
    engine::SnapshotStore& store;
    engine::Executor& executor;
    CollectionChanges& changes;
    const ServingBackend& backend;
    const Limits& limits;
    bool log_requests = false;
  };
  explicit RpcServices(const Parts& parts);
  ~RpcServices();

  std::vector<grpc::Service*> services();
  // Every call of these services passes through it.
  CallGate& gate();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace simile::service
