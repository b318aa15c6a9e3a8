#pragma once

#include <cstdint>
#include <string_view>

#include "net/rpc_call.h"
#include "observe/metrics.h"
#include "service/access/principal.h"
#include "service/rpc_environment.h"

namespace simile::service {

// Where the handler of a method runs.
enum class Runs : std::uint8_t {
  kOnLoop,  // its time is bounded: nothing in it grows with rows, text or the reply
  kOnWorker,
};

// A row of the table of methods.
struct MethodRow {
  const char* path;          // "/simile.v1.SearchService/Search"; static storage
  Role role = Role::kAdmin;  // that its callers need
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
        metric_(row.is_recorded ? &environment.metrics.CallsOf(name()) : nullptr),
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
  // Of a stream its messages count instead.
  bool counts_in_flight() const { return row_.is_recorded && type_ != Type::kBidiStream; }

 private:
  RpcEnvironment& environment_;
  const MethodRow row_;
  observe::CallMetric* const metric_;
  const Type type_;
};

}  // namespace simile::service
