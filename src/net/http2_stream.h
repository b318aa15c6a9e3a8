#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "net/event_loop.h"
#include "net/request_body.h"
#include "net/rpc_call.h"

namespace simile::net {

class Http2Connection;

// A call of gRPC over one stream of HTTP/2. Reads the headers, makes messages of the body, has the
// method make the call, and sends what the call answers. Used on the loop's thread. Owned by its
// connection until the stream is closed.
class Http2Stream final : private EventLoop::Timer, private EventLoop::Task {
 public:
  Http2Stream(Http2Connection& connection, std::int32_t id);
  // Answers a call when there is no memory to make its Http2Stream. Returns 0, or
  // NGHTTP2_ERR_NOMEM.
  static int RefuseForMemory(nghttp2_session* session, std::int32_t id);

  // What comes from the caller. May throw bad_alloc, after which Fail must be called.
  void OnHeader(std::string_view name, std::string_view value);
  void OnHeadersEnd(bool is_end);
  void OnData(std::span<const std::uint8_t> bytes);
  void OnRequestEnd();
  // Ends the call: there was no memory for one of its steps.
  void Fail();
  // The last frame of the answer was sent.
  void OnAnswered();
  // Bytes of headers, as HPACK counts them (RFC 7541, section 4.1).
  std::size_t header_bytes() const { return header_bytes_; }

  // Called when the connection may send DATA of this stream. See nghttp2_data_source_read_callback.
  ssize_t ReadData(std::size_t bytes_max, std::uint32_t& flags);
  // The message that is being sent, from offset() on; null for none.
  const std::shared_ptr<const OutgoingMessage>& message() const { return message_; }
  std::size_t offset() const { return offset_; }
  // Called when bytes of the message are in the connection's queue.
  void OnDataTaken(std::size_t bytes);

  // What the call asks for.
  void WantMessage();
  void Send(std::shared_ptr<const OutgoingMessage> message, Clock::TimePoint take_by);
  void Finish(std::shared_ptr<const OutgoingMessage> last, CallEnd end, Clock::TimePoint take_by);
  void SendInitial(Metadata metadata);
  // Resets the stream: CANCEL.
  void Reset();
  bool is_sending() const { return message_ != nullptr; }
  bool wants_message() const { return wants_message_; }

  // What the server asks for.
  void StopCall();
  // Resets the stream when the caller has not taken a message in time. Ends the call when no more
  // of its request comes while other requests wait for its space.
  void LookAtProgress();
  // The stream or its connection is closed: destroys this object, now or when its posted task runs.
  void Close();

  EventLoop& loop() const;
  std::shared_ptr<OpenCalls> open_calls() const;
  const std::atomic<bool>& server_stops() const;

 private:
  friend class Http2Connection;  // for its list

  // What the headers say, until the call is made.
  struct Incoming {
    CallHead head;
    RpcMethod* method = nullptr;
    bool is_post = false;
    bool is_grpc = false;
    bool is_encoded = false;  // grpc-encoding is not identity
    bool has_bad_value = false;
  };

  void Run() override;     // the body may go on
  void OnTime() override;  // the deadline has passed

  void OnOwnHeader(std::string_view name, std::string_view value);
  // Refuses a request that is no call of this server's methods. True when it refused.
  bool RefuseHeaders();
  void BeginCall(ReceivedMessage request);
  void MakeCall();
  // Goes on when a message is whole, or the body is refused.
  void Progress();
  void OnBodyProblem();
  void Deliver(std::optional<ReceivedMessage> message);
  void Consume(std::size_t bytes);
  void GrowWindow();

  // Ends the call without its handler, or before its handler has finished.
  void EndByServer(absl::StatusCode code, std::string_view message);
  void AnswerHttp(std::string_view status);  // a request that is not gRPC's
  void AppendFirstHeaders(std::vector<nghttp2_nv>& headers) const;
  void SubmitHeaders();
  void SubmitEnd();  // the trailers, or the whole answer
  // Has `make` fill a list of headers and submit it. Resets the stream when that fails.
  template <class Make>
  void Submit(const Make& make);
  void Resume();
  // Ends a stream that cannot be answered any more.
  void SubmitReset(std::uint32_t code);
  void DropMessage();
  void DetachCall();
  ~Http2Stream() override;

  Http2Connection& connection_;
  const std::int32_t id_;
  Http2Stream* previous_ = nullptr;  // of the connection's list
  Http2Stream* next_ = nullptr;

  // What comes.
  std::size_t header_bytes_ = 0;
  Incoming incoming_;
  bool headers_ended_ = false;
  bool request_ended_ = false;
  bool wants_message_ = false;
  std::optional<RequestBody> body_;
  Clock::TimePoint moved_at_;  // when the last bytes came
  RpcCall* call_ = nullptr;

  // What goes out.
  bool headers_sent_ = false;
  bool is_deferred_ = false;  // nghttp2 waits until Resume
  bool trailers_sent_ = false;
  bool is_reset_ = false;
  bool is_closed_ = false;
  Metadata initial_;
  std::shared_ptr<const OutgoingMessage> message_;
  std::size_t offset_ = 0;  // in message_, framed
  std::optional<CallEnd> end_;
  Clock::TimePoint take_by_ = Clock::TimePoint::max();
  bool is_answered_ = false;  // the last frame of the answer was sent
};

}  // namespace simile::net
