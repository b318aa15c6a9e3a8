#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/server.h>

#include "simile/v1/search.grpc.pb.h"

namespace simile::cli::bench {

// Answers each Search at once, but for one stall: from so long after its first call, for so long,
// it answers nothing, and then everything that came meanwhile. Records when that was.
class StallingServer {
 public:
  using Time = std::chrono::steady_clock::time_point;

  StallingServer(std::chrono::milliseconds stall_after, std::chrono::milliseconds stall_for);
  ~StallingServer();
  StallingServer(const StallingServer&) = delete;
  StallingServer& operator=(const StallingServer&) = delete;

  const std::string& address() const { return address_; }

  struct Record {
    std::optional<Time> first_call;
    Time stall_begin;
    Time stall_end;  // when the last call that waited was answered
  };
  Record record();

 private:
  class Service;

  // Answers now, or keeps the call until the stall ends.
  void AnswerOrKeep(grpc::ServerUnaryReactor* call);
  void EndStall();

  const std::chrono::milliseconds stall_after_;
  const std::chrono::milliseconds stall_for_;
  std::mutex mutex_;
  std::condition_variable begun_or_stopped_;
  Record record_;
  bool is_over_ = false;
  bool is_stopped_ = false;
  std::vector<grpc::ServerUnaryReactor*> waiting_;
  std::string address_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::thread ending_;
};

}  // namespace simile::cli::bench
