#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <utility>

#include "net/rpc_call.h"
#include "service/call.h"
#include "service/grpc/call_record.h"
#include "service/grpc/messages.h"
#include "service/grpc/method.h"

namespace simile::service {

// A call of a method as the transport has it: counts it, and says why its request is not received.
class Exchange : public net::RpcCall {
 public:
  std::stop_token cancelled() const { return cancelled_.get_token(); }

 protected:
  Exchange(Method& method, net::Http2Stream& stream, net::CallHead head)
      : RpcCall(stream, std::move(head)), method_(method) {}

  Method& method() const { return method_; }
  RpcEnvironment& environment() const { return method_.environment(); }

  // On the loop: has a worker run it; counts a refusal. Errors: kQueueFull, kOutOfMemory.
  template <class Work>
  absl::Status Post(Work work, const WorkNeeds& needs) {
    const absl::Status posted =
        Guarded([&] { return PostToWorkers(environment().workers, std::move(work), needs); });
    CountRefusal(environment().metrics, posted);
    return posted;
  }
  // Has the handler read and answer a request, here or on a worker. Errors: those of Post.
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
  // The call has arrived: makes what its handler sees. May throw.
  virtual void MakeCall() = 0;
  // Reads and handles the call; returns why not. May throw.
  virtual absl::Status BeginWith(net::ReceivedMessage request) = 0;
  // Ends the call that could not begin, or go on.
  virtual void Reject(const absl::Status& status) = 0;
  virtual void OnCallerGone() {}
  // See RpcCall::Stop.
  virtual void OnStop() {}
  // The transport has let go of it.
  virtual void Destroy() = 0;

  void Begin(net::ReceivedMessage request) final;
  void Refused(Problem problem, std::uint32_t declared_bytes) final;
  void Gone() final;
  void Stop() final;
  void Release() final;
  // False when there was no memory; then the call is ended.
  bool Make();

  Method& method_;
  bool is_made_ = false;
  bool has_failed_ = false;  // there was no memory to make it
  std::stop_source cancelled_;
};

}  // namespace simile::service
