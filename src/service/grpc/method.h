#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>

#include "net/io_thread.h"
#include "net/queued_service.h"
#include "observe/metrics.h"
#include "service/access/principal.h"
#include "service/rpc_environment.h"

namespace simile::service {

// Where the handler of a method runs.
enum class Runs : std::uint8_t {
  kOnIoThread,  // its time is bounded: nothing in it grows with rows, text or the reply
  kOnWorker,
};

// A row of the table of methods.
struct MethodRow {
  const char* path;          // "/simile.v1.SearchService/Search"; static storage
  Role role = Role::kAdmin;  // that its callers need
  Runs runs = Runs::kOnWorker;
  // How many calls gRPC can hand out before the I/O thread asks for more. Others wait in gRPC.
  std::size_t posted = 2;
  bool is_recorded = true;  // in metrics and log
};

class MethodService;

// A method of a service: takes calls from a queue.
class Method : private net::PostponedWork {
 public:
  using Type = grpc::internal::RpcMethod::RpcType;
  // Where gRPC is asked for calls.
  struct Source {
    MethodService& service;
    int index;  // of the method
    net::IoThread& thread;
  };

  Method(RpcEnvironment& environment, const MethodRow& row, Type type);
  ~Method() override = default;
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;

  // Takes calls from now on. The thread must end before the method does.
  void TakeCalls(const Source& source);
  // On the I/O thread: a call that was asked for has arrived.
  void CallArrived();

  RpcEnvironment& environment() const { return environment_; }
  const MethodRow& row() const { return row_; }
  // "simile.v1.SearchService/Search"; static storage.
  std::string_view name() const { return row_.path + 1; }
  // Null for health checks, which are neither timed nor logged.
  observe::CallMetric* metric() const { return metric_; }
  Type type() const { return type_; }
  // Of a stream its messages count instead.
  bool counts_in_flight() const { return row_.is_recorded && type_ != Type::BIDI_STREAMING; }
  // REQUIRES: it takes calls.
  const Source& source() const { return *source_; }

 private:
  // Asks gRPC for one call. May throw bad_alloc; then it is not asked.
  virtual void AskForCall() = 0;
  // Asks for as many as are wanted; without memory for that, later again.
  void AskForCalls();
  void Retry() override { AskForCalls(); }

  RpcEnvironment& environment_;
  const MethodRow row_;
  observe::CallMetric* const metric_;
  const Type type_;
  std::optional<Source> source_;
  std::size_t asked_ = 0;  // calls that have not arrived. Used by the I/O thread only
};

// A gRPC service made of a table of methods, which get the bytes of requests: gRPC would answer
// bytes that it cannot parse as if the method were missing.
class MethodService final : public grpc::Service, public net::QueuedService {
 public:
  explicit MethodService(std::vector<std::unique_ptr<Method>> methods);

  grpc::Service& grpc_service() override { return *this; }
  void TakeCalls(net::IoThread& thread) override;

  // For exchanges: asks gRPC for one call, whose arrival is the event.
  using grpc::Service::RequestAsyncBidiStreaming;
  using grpc::Service::RequestAsyncServerStreaming;
  using grpc::Service::RequestAsyncUnary;

 private:
  const std::vector<std::unique_ptr<Method>> methods_;
};

}  // namespace simile::service
