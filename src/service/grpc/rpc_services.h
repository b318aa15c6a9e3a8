#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "engine/queue/executor.h"
#include "engine/snapshots/snapshot_store.h"
#include "observe/audit_log.h"
#include "observe/failure_lines.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "service/access/access_control.h"
#include "service/admin_handlers.h"
#include "service/calls/health.h"
#include "service/calls/resolve_workers.h"
#include "service/changes/collection_changes.h"
#include "service/replies/collection_message.h"
#include "simile/clock.h"
#include "simile/limits.h"

namespace simile::net {
class RpcMethod;
}

namespace simile::service {

// The services of simile.v1, and grpc.health.v1.Health, for a gRPC server; the only place that
// connects methods with handlers. Owned by wiring. Must outlive the server; its parts must outlive
// it.
class RpcServices {
 public:
  struct Parts {
    const Clock& clock;
    const observe::Logger& log;
    observe::FailureLines& failure_lines;
    observe::AuditLog& audit;
    observe::Metrics& metrics;
    engine::SnapshotStore& store;
    engine::Executor& executor;
    CollectionChanges& changes;
    const ServingBackend& backend;
    AdminParts admin;
    Health& health;
    const Limits& limits;
    AccessControl& access;
    bool log_requests = false;
    bool reflection = false;  // describes the services to anyone
  };
  explicit RpcServices(const Parts& parts);
  ~RpcServices();

  std::span<net::RpcMethod* const> methods() const;

  // What is held outside of the executor's queue, for metrics.
  struct Counts {
    std::uint64_t unsent_bytes = 0;  // of replies
    ResolveWorkers::Counts resolve;
  };
  Counts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// While it lives, messages that protobuf would print to standard error go to our log as debug
// lines. So a log of JSON lines has only JSON lines. The library has one log function for the
// process, so only the server program constructs this; tests do not.
class LibraryLogs {
 public:
  explicit LibraryLogs(const observe::Logger& log);  // borrowed
  ~LibraryLogs();
  LibraryLogs(const LibraryLogs&) = delete;
  LibraryLogs& operator=(const LibraryLogs&) = delete;
};

}  // namespace simile::service
