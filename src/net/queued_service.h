#pragma once

namespace grpc {
class Service;
}

namespace simile::net {

class IoThread;

// A gRPC service whose calls come out of completion queues. Must outlive its server.
class QueuedService {
 public:
  virtual ~QueuedService() = default;

  virtual grpc::Service& grpc_service() = 0;
  // Takes calls from the thread's queue from now on. After the server was built, before the thread
  // starts.
  virtual void TakeCalls(IoThread& thread) = 0;
};

// Whether the calling thread is an IoThread, which before it waits begins the work that it brought.
bool OnIoThread();

}  // namespace simile::net
