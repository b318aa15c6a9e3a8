#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <absl/status/status.h>

#include "net/rpc_call.h"
#include "observe/audit_log.h"
#include "observe/failure_lines.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "service/access/access_control.h"
#include "service/access/access_policy.h"
#include "service/calls/call_ids.h"
#include "service/calls/resolve_workers.h"
#include "service/calls/unsent_replies.h"
#include "simile/clock.h"
#include "simile/limits.h"

namespace simile::service {

class SearchPipeline;
class ServedSnapshots;

// What a call of any method needs to be counted, timed, logged and run.
struct RpcEnvironment {
  const Clock& clock;
  const observe::Logger& log;
  observe::FailureLines& failure_lines;
  observe::AuditLog& audit;
  observe::Metrics& metrics;
  const Limits& limits;
  AccessControl& access;
  bool log_requests = false;  // also log a line for every successful call
  RequestIds request_ids;
  ResolveWorkers workers;
  const std::shared_ptr<UnsentReplies> unsent_replies =
      std::make_shared<UnsentReplies>(limits.unsent_bytes_max);
};

// Where the handler of a method runs.
enum class Runs : std::uint8_t {
  kOnLoop,  // its time is bounded: nothing in it grows with rows, text or the reply
  kOnWorker,
};

// A row of the table of methods.
struct MethodRow {
  const char* path;          // "/simile.v1.SearchService/Search"; static storage
  Role role = Role::kAdmin;  // that a caller needs
  Runs runs = Runs::kOnWorker;
  bool is_recorded = true;  // in metrics and log
};

// A method of a service.
class Method : public net::RpcMethod {
 public:
  enum class Type : std::uint8_t { kUnary, kServerStream, kBidiStream };

  Method(RpcEnvironment& environment, const MethodRow& row, Type type)
      : environment_(environment),
        row_(row),
        metric_(row.is_recorded ? &environment.metrics.FindOrAddCalls(name()) : nullptr),
        type_(type) {}
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;

  std::string_view path() const override { return row_.path; }
  bool takes_stream() const override { return type_ == Type::kBidiStream; }

  RpcEnvironment& environment() const { return environment_; }
  const MethodRow& row() const { return row_; }
  // "simile.v1.SearchService/Search"; static storage.
  std::string_view name() const { return row_.path + 1; }
  // Null for health checks, which are neither timed nor logged.
  observe::CallMetric* metric() const { return metric_; }
  // False for a stream of requests, whose messages count instead.
  bool counts_in_flight() const { return row_.is_recorded && type_ != Type::kBidiStream; }

 private:
  RpcEnvironment& environment_;
  const MethodRow row_;
  observe::CallMetric* const metric_;
  const Type type_;
};

// The row of SearchStream in the table: makes a call of each message, within the bounds of a
// StreamWindow, and sends the answers one after the other.
std::unique_ptr<Method> SearchStreamMethod(RpcEnvironment& environment, const MethodRow& row,
                                           const SearchPipeline& pipeline);

// What an Export is answered from. Borrowed.
struct ExportServices {
  const ServedSnapshots& snapshots;
  const SearchPipeline& pipeline;
};

// The row of Export in the table: computes the next message while one is being sent, and holds no
// more than these two. A message that takes too long or becomes too large is made again from fewer
// sources.
std::unique_ptr<Method> ExportMethod(RpcEnvironment& environment, const MethodRow& row,
                                     const ExportServices& services);

// gRPC's server reflection, v1 and v1alpha: describes the services of these methods and itself to
// anyone who asks, from the descriptors of the protobuf library.
std::vector<std::unique_ptr<net::RpcMethod>> ReflectionMethods(
    std::span<net::RpcMethod* const> methods);

}  // namespace simile::service
