#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <absl/status/status.h>

#include "service/grpc/exchange.h"

namespace simile::service {

// A call that is answered by any number of messages. Its handlers change the state while mutex_ is
// held; Advance then asks the transport for what the state allows. The transport answers later, and
// never within Advance. Holds itself until the transport has released it. Work for it on other
// threads holds it, too.
class StreamExchange : public Exchange, public std::enable_shared_from_this<StreamExchange> {
 protected:
  StreamExchange(Method& method, net::Http2Stream& stream, net::CallHead head)
      : Exchange(method, stream, std::move(head)), record_(method, this->head()) {}

  const CallRecord& record() const { return record_; }

  // The next four functions require that mutex_ is held.
  // Sets why the stream ends before all is answered. The caller gets the first reason.
  void EndWith(const absl::Status& status) {
    if (!end_ && !ended_) end_ = status;
  }
  bool is_ending() const { return end_.has_value() || broken_; }
  // REQUIRES: !writing_
  void SendNow(ReplyMessage message) {
    writing_ = true;
    Send(std::move(message), TakeBy(environment().clock.Now()));
  }
  // REQUIRES: !writing_. Nothing may be asked of the transport afterwards.
  void FinishNow() {
    ended_ = true;
    const absl::Status end = end_.value_or(absl::OkStatus());
    if (!end.ok()) record_.Ended(end);
    Finish(nullptr, MakeCallEnd(end, record_), TakeBy(environment().clock.Now()));
  }

  // Changes the state with mutex_ held, then advances. REQUIRES: mutex_ is not held; a shared_ptr
  // keeps the stream alive.
  template <class Step>
  void Change(const Step& step) {
    {
      const std::lock_guard lock(mutex_);
      step();
    }
    Advance();
  }

  std::mutex mutex_;      // guards the members below, and those of derived classes that say so
  bool writing_ = false;  // a message
  bool broken_ = false;   // the caller is gone
  bool ended_ = false;

 private:
  template <class Stream, class Services>
  friend class StreamMethod;

  // Any thread. REQUIRES: a shared_ptr keeps the stream alive.
  virtual void Advance() = 0;
  // A message was sent, or dropped. mutex_ is held.
  virtual void OnSent() {}

  void Reject(const absl::Status& status) final {
    Change([&] { EndWith(status); });
  }
  void OnCallerGone() final {
    Change([&] { broken_ = true; });
  }
  void Sent(bool ok) final {
    Change([&] {
      writing_ = false;
      broken_ = broken_ || !ok;
      OnSent();
    });
  }
  void Release() final {
    const std::shared_ptr<StreamExchange> self = std::move(self_);  // perhaps the last owner
  }

  const CallRecord record_;
  std::shared_ptr<StreamExchange> self_;
  std::optional<absl::Status> end_;  // guarded by mutex_; is not written once ended_
};

// A row of the table: a method that Stream(method, services, stream, head) answers.
//   Services  may be a reference
template <class Stream, class Services>
class StreamMethod final : public Method {
 public:
  StreamMethod(RpcEnvironment& environment, const MethodRow& row, Type type,
               const Services& services)
      : Method(environment, row, type), services_(services) {}

 private:
  net::RpcCall& NewCall(net::Http2Stream& stream, net::CallHead head) override {
    auto call = std::make_shared<Stream>(*this, services_, stream, std::move(head));
    StreamExchange& held = *call;
    held.self_ = std::move(call);
    return held;
  }

  const Services services_;
};

}  // namespace simile::service
