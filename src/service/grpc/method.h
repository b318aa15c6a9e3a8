#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>

#include "net/io_thread.h"
#include "net/queued_service.h"
#include "service/grpc/call_record.h"
#include "service/rpc_environment.h"

namespace simile::service {

// Where the handler of a method runs.
enum class Runs : std::uint8_t {
  kOnIoThread,  // its time is bounded: nothing in it grows with rows, text or the reply
  kOnWorker,
};

// A row of the table of methods.
struct MethodRow {
  const char* path;  // "/simile.v1.SearchService/Search"; static storage
  Runs runs = Runs::kOnWorker;
  // How many calls gRPC can hand out before the I/O thread asks for more. Others wait in gRPC.
  std::size_t posted = 2;
  bool is_recorded = true;  // in metrics and log
};

class MethodService;

// A method of a service: takes calls from queues.
class Method {
 public:
  using Type = grpc::internal::RpcMethod::RpcType;

  Method(RpcEnvironment& environment, const MethodRow& row, Type type);
  virtual ~Method() = default;
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;

  // Takes calls from the thread's queue from now on, which must end before the method does.
  virtual void TakeCalls(MethodService& service, int index, net::IoThread& thread) = 0;

  RpcEnvironment& environment() const { return environment_; }
  const MethodRow& row() const { return row_; }
  const MethodIdentity& identity() const { return identity_; }
  Type type() const { return type_; }

 private:
  RpcEnvironment& environment_;
  const MethodRow row_;
  const MethodIdentity identity_;
  const Type type_;
};

// A gRPC service made of a table of methods, which get the bytes of requests: gRPC would answer
// bytes that it cannot parse as if the method were missing.
class MethodService final : public grpc::Service, public net::QueuedService {
 public:
  explicit MethodService(std::vector<std::unique_ptr<Method>> methods);

  grpc::Service& grpc_service() override { return *this; }
  void TakeCalls(net::IoThread& thread) override;

  // For methods: asks gRPC for one call, whose arrival is the event.
  using grpc::Service::RequestAsyncBidiStreaming;
  using grpc::Service::RequestAsyncServerStreaming;
  using grpc::Service::RequestAsyncUnary;

 private:
  const std::vector<std::unique_ptr<Method>> methods_;
};

}  // namespace simile::service
