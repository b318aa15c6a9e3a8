#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <utility>

#include "net/rpc_call.h"
#include "service/calls/call.h"
#include "service/grpc/call_record.h"
#include "service/grpc/messages.h"
#include "service/grpc/method.h"

namespace simile::service {

// A call of a method as the transport sees it: counts it, and says why its request is not received.
// The constructor of a derived class makes what the handler sees.
class Exchange : public net::RpcCall {
 public:
  std::stop_token cancelled() const { return cancelled_.get_token(); }

 protected:
  Exchange(Method& method, net::Http2Stream& stream, net::CallHead head)
      : RpcCall(stream, std::move(head)), method_(method) {
    if (method_.counts_in_flight()) environment().metrics.AddRequestsInFlight(1);
  }
  ~Exchange() override {
    if (method_.counts_in_flight()) environment().metrics.AddRequestsInFlight(-1);
  }

  Method& method() const { return method_; }
  RpcEnvironment& environment() const { return method_.environment(); }

  // Has a worker run the work, and counts a refusal. On the loop. Errors: kQueueFull, kOutOfMemory.
  template <class Work>
  absl::Status Post(Work work, const WorkNeeds& needs) {
    const absl::Status posted =
        Guarded([&] { return PostToWorkers(environment().workers, std::move(work), needs); });
    CountRefusal(environment().metrics, posted);
    return posted;
  }
  // Runs the handler: here when the method runs on the loop and the request is small, else on a
  // worker. Errors: those of Post.
  template <class Run>
  absl::Status Handle(Run run, CallerKey caller, std::size_t request_bytes) {
    const bool is_large = request_bytes > kParsedAtOnceBytesMax;
    if (method_.row().runs == Runs::kOnLoop && !is_large) {
      run();
      return absl::OkStatus();
    }
    return Post(std::move(run),
                {caller, request_bytes, is_large ? ParsedBytesMax(request_bytes) : 0});
  }

  // The time by which the caller must take the answer: limits.search_deadline_max after the request
  // arrived, but at least 1 s from now.
  Clock::TimePoint TakeBy(Clock::TimePoint arrived_at) const;

 private:
  // Exchange calls these on the loop.
  // Reads and handles the call, or returns why it cannot. May throw.
  virtual absl::Status BeginWith(net::ReceivedMessage request) = 0;
  // Ends a call that cannot begin, or cannot go on.
  virtual void Reject(const absl::Status& status) = 0;
  virtual void OnCallerGone() {}

  void Begin(net::ReceivedMessage request) final;
  void Refused(Problem problem, std::uint32_t declared_bytes) final;
  void Gone() final;

  Method& method_;
  std::stop_source cancelled_;
};

}  // namespace simile::service
