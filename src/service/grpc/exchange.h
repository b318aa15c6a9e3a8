#pragma once

#include <atomic>
#include <cstddef>
#include <stop_token>
#include <utility>

#include <grpcpp/server_context.h>

#include "service/call_work.h"
#include "service/grpc/call_record.h"
#include "service/grpc/messages.h"
#include "service/grpc/method.h"
#include "service/guarded.h"

namespace simile::service {

// A call as gRPC sees it, from when gRPC is asked for it until gRPC is done with it: counts, and
// lets go of it after the last operation. Two operations are there from the start: the end of the
// call, which the derived class begins once, and the one that says when the call is done.
class Exchange : public net::OpenCall {
 public:
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  grpc::ServerContext& context() { return context_; }
  std::stop_token cancelled() const { return cancelled_.get_token(); }

 protected:
  // The derived class asks gRPC for the call.
  explicit Exchange(Method& method);

  Method& method() const { return method_; }
  RpcEnvironment& environment() const { return method_.environment(); }
  net::IoThread& thread() const { return method_.source().thread; }
  void* arrived_tag() { return arrived_event_.tag(); }
  void* end_tag() { return end_event_.tag(); }

  // On the I/O thread: has a worker run it; counts a refusal. Errors: kQueueFull, kOutOfMemory.
  template <class Work>
  absl::Status Post(Work work, const WorkNeeds& needs) {
    const absl::Status posted =
        Guarded([&] { return PostToWorkers(environment().workers, std::move(work), needs); });
    CountRefusal(environment().metrics, posted);
    return posted;
  }
  // Has the handler read and answer a request, here or on a worker. Errors: kStopping, those of
  // Post.
  template <class Run>
  absl::Status Handle(Run run, CallerKey caller, std::size_t request_bytes) {
    if (thread().stopping()) {
      environment().metrics.CountRejected(observe::Rejection::kDraining);
      return StoppingError();
    }
    const bool is_large = request_bytes > kParsedAtOnceBytesMax;
    if (method_.row().runs == Runs::kOnIoThread && !is_large) {
      run();
      return absl::OkStatus();
    }
    return Post(std::move(run),
                {caller, request_bytes, is_large ? ParsedBytesMax(request_bytes) : 0});
  }

  // An answer, or the end, of what arrived then is sent now. The caller must take it within the
  // longest deadline after the arrival, or a moment from now when that is later.
  void ExpectTaken(Clock::TimePoint arrived_at);

  // The derived class begins an operation besides those two. Before its end. Any thread.
  void AddOperation() { operations_.fetch_add(1, std::memory_order_relaxed); }
  // An operation has ended, on the I/O thread. This may be gone afterwards.
  void EndOperation();

 private:
  // Exchange calls these on the I/O thread.
  // The call has arrived: makes what its handler sees. May throw.
  virtual void MakeCall() = 0;
  // Begins the end of a call that could not be made.
  virtual void SendEnd(const grpc::Status& status) = 0;
  // Reads and handles the call; returns why not.
  virtual absl::Status Begin() = 0;
  // Ends the call that could not begin.
  virtual void Reject(const absl::Status& status) = 0;
  virtual void OnCallerGone() {}
  // Destroys this: gRPC knows it no more.
  virtual void Release() = 0;

  void Cut() override { context_.TryCancel(); }

  void OnArrived(bool ok);
  void OnEnd(bool ok);
  void OnDone(bool ok);

  Method& method_;
  grpc::ServerContext context_;
  net::IoEventOf<Exchange> arrived_event_{*this, &Exchange::OnArrived};
  net::IoEventOf<Exchange> end_event_{*this, &Exchange::OnEnd};
  net::IoEventOf<Exchange> done_event_{*this, &Exchange::OnDone};
  std::atomic<int> operations_ = 2;  // that have not ended
  std::stop_source cancelled_;
};

}  // namespace simile::service
