#include "cli/bench/stalling_server.h"

#include <utility>

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

namespace simile::cli::bench {

class StallingServer::Service final : public v1::SearchService::CallbackService {
 public:
  explicit Service(StallingServer& server) : server_(server) {}

  grpc::ServerUnaryReactor* Search(grpc::CallbackServerContext* context, const v1::SearchRequest*,
                                   v1::SearchResponse*) override {
    grpc::ServerUnaryReactor* call = context->DefaultReactor();
    server_.AnswerOrKeep(call);
    return call;
  }

 private:
  StallingServer& server_;
};

StallingServer::StallingServer(std::chrono::milliseconds stall_after,
                               std::chrono::milliseconds stall_for)
    : stall_after_(stall_after), stall_for_(stall_for), service_(std::make_unique<Service>(*this)) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
  address_ = "127.0.0.1:" + std::to_string(port);
  ending_ = std::thread([this] { EndStall(); });
}

StallingServer::~StallingServer() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  begun_or_stopped_.notify_all();
  ending_.join();
  server_->Shutdown();
}

StallingServer::Record StallingServer::record() {
  const std::lock_guard lock(mutex_);
  return record_;
}

void StallingServer::AnswerOrKeep(grpc::ServerUnaryReactor* call) {
  {
    const std::lock_guard lock(mutex_);
    const Time now = std::chrono::steady_clock::now();
    if (!record_.first_call) {
      record_.first_call = now;
      record_.stall_begin = now + stall_after_;
      begun_or_stopped_.notify_all();
    }
    if (now >= record_.stall_begin && !is_over_) {
      waiting_.push_back(call);
      return;
    }
  }
  call->Finish(grpc::Status::OK);
}

void StallingServer::EndStall() {
  std::unique_lock lock(mutex_);
  begun_or_stopped_.wait(lock, [this] { return record_.first_call.has_value() || is_stopped_; });
  if (record_.first_call) {
    begun_or_stopped_.wait_until(lock, record_.stall_begin + stall_for_,
                                 [this] { return is_stopped_; });
  }
  is_over_ = true;
  const auto waiting = std::exchange(waiting_, {});
  lock.unlock();
  for (grpc::ServerUnaryReactor* call : waiting) call->Finish(grpc::Status::OK);
  lock.lock();
  record_.stall_end = std::chrono::steady_clock::now();
}

}  // namespace simile::cli::bench
