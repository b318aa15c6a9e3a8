#include "service/grpc/method.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <absl/status/status.h>
#include <google/protobuf/arena.h>

#include "base/error_detail.h"
#include "google/rpc/status.pb.h"
#include "net/event_loop.h"
#include "service/calls/call.h"
#include "service/grpc/server_call.h"
#include "service/grpc/stream_exchange.h"
#include "service/handlers.h"
#include "service/replies/error_encoding.h"
#include "service/replies/wire_writer.h"
#include "service/requests/request_fields.h"
#include "service/requests/stream_requests.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

// A stopping server calls Stop() of each stream every net::RpcCall::kStopInterval. After this
// number of calls the stream takes no further request, however busy it is.
constexpr int kStopsMax = 10;

// The answer of a message of the stream: a reply within its field, after the tag of the message.
class TaggedReply final : public Reply {
 public:
  //   field  of SearchStreamResponse
  TaggedReply(std::uint64_t tag, int field, const Reply& reply)
      : tag_(tag), field_(field), reply_(reply) {
    ByteCounter counter(sizes_, reply.bytes());
    Encode(counter);
  }

  std::size_t bytes() const override { return sizes_.bytes; }
  bool is_exact() const override { return reply_.is_exact(); }
  std::uint8_t* Write(std::uint8_t* out) const override {
    WireWriter writer(sizes_, out);
    Encode(writer);
    return writer.end();
  }

 private:
  template <class Sink>
  void Encode(Sink& out) const {
    out.Number(v1::SearchStreamResponse::kTagFieldNumber, tag_);
    out.Nested(field_, reply_);
  }

  const std::uint64_t tag_;
  const int field_;
  const Reply& reply_;
  WireSizes sizes_;
};

// Makes an error small enough that its reply counts in no budget.
void Shorten(google::rpc::Status& error) {
  constexpr std::size_t kMessageBytesMax = kUncountedReplyBytes - 64;
  error.clear_details();
  if (error.message().size() <= kMessageBytesMax) return;
  error.set_message("replies that wait to be read leave no memory for the text of this error");
}

// Reads one message at a time, and none while the window is full. The transport sees the end only
// after every call has finished.
class SearchStream final : public StreamExchange {
 public:
  SearchStream(Method& method, const SearchPipeline& pipeline, net::Http2Stream& stream,
               net::CallHead head)
      : StreamExchange(method, stream, std::move(head)),
        pipeline_(pipeline),
        window_({environment().limits.stream_requests_max, environment().limits.reply_bytes_max}) {}

 private:
  class Request;

  absl::Status BeginWith(net::ReceivedMessage request) override;
  void Received(std::optional<net::ReceivedMessage> message) override;
  // The server stops. Takes no further request when the caller has sent none since the last call of
  // Stop, or after kStopsMax calls. Ends after the answers of the requests that were taken.
  void Stop() override;

  // Takes the message that was read.
  //   received  false: there is none, and the caller sends no more
  void TakeRead(bool received);
  //   status   why the stream ends now, unless OK
  //   request  the one that was read; null for none
  void EndReading(const absl::Status& status, bool reads_ended = false,
                  std::unique_ptr<Request> request = nullptr);
  // Parses the message that was read. Its errors end the stream.
  absl::Status ParseRequest(std::unique_ptr<Request>& request);
  // The answer, or error, of a request that was taken. Any thread.
  void Complete(std::uint64_t number, ReplyMessage answer);
  // Starts the request that waits, if it may be taken now, before it asks the transport.
  void Advance() override;
  void AskTransport();
  // Answers a request that was taken: here, or on a worker when it is large and this is a loop.
  void AnswerRequest(std::unique_ptr<Request> request);

  // The functions below require that mutex_ is held.
  void OnSent() override;
  std::unique_ptr<Request> TakeWaiting();
  void DropAnswers();

  const SearchPipeline& pipeline_;

  // Used only by the thread that reads or parses a message, one at a time.
  net::ReceivedMessage incoming_;
  StreamOrder order_;
  std::uint64_t messages_read_ = 0;

  // Guarded by mutex_.
  StreamWindow window_;
  std::unique_ptr<Request> waiting_;               // read, but not taken yet
  std::map<std::uint64_t, ReplyMessage> answers_;  // of requests that were taken, by number
  bool reading_ = false;                           // a message, or parsing it
  bool parsing_ = false;              // a worker parses a large message that has arrived
  int stops_ = 0;                     // how often the server asked for the end
  std::uint64_t number_at_stop_ = 1;  // next_number() at the last Stop; 1 at first
  bool reads_ended_ = false;          // the caller sends no more
};

// One message of the stream: a call of its own, whose response goes out with its tag. Deletes
// itself when it finishes.
class SearchStream::Request final : public ServerCall<Call> {
 public:
  Request(SearchStream& stream, std::uint64_t number)
      : ServerCall<Call>(stream.environment(), stream.record().OfMessage(number),
                         stream.cancelled()),
        stream_(stream),
        number_(number),
        message_(google::protobuf::Arena::CreateMessage<v1::SearchStreamRequest>(&arena_)) {}

  // Errors: those of ParseMessage; kQueueFull when what callers have not read leaves no memory for
  // a large one, which may wait until its answer has a place.
  absl::Status Parse(std::string_view bytes) {
    const std::size_t length = bytes.size();
    bytes_ = length;
    return Guarded([&] {
      absl::Status parsed = ParseMessage(bytes, *message_);
      tag_ = message_->tag();
      is_search_ = message_->has_search();
      if (!parsed.ok() || length <= kParsedAtOnceBytesMax) return parsed;
      large_bytes_ = length + arena_.SpaceAllocated();
      ResolveWorkers::NeedsOnly(large_bytes_);
      return CountUnsent(large_bytes_, reply_limit(), counted_);
    });
  }
  // Checks the caller's access, and the message's order and timeout.
  void Check(StreamOrder& order) {
    refusal_ = Admit(bytes_);
    if (refusal_.ok()) refusal_ = order.Agree(*message_);
    const auto timeout = ValidateTimeout(*message_, environment().limits);
    if (timeout.ok()) SetDeadline(arrived_at() + *timeout);
    if (refusal_.ok()) refusal_ = timeout.status();
  }
  // The memory that a large message takes; 0 for other messages.
  std::uint64_t large_bytes() const { return large_bytes_; }
  void SetRefusal(const absl::Status& refusal) { refusal_ = refusal; }
  std::uint64_t number() const { return number_; }
  std::uint64_t reply_bytes() const { return ReplyBytesMax(*message_, environment().limits); }

  // Answers the request, now or later. `request` is gone after that.
  static void Run(std::unique_ptr<Request> request) {
    Request& call = *request.release();
    call.counted_ = {};  // from now on the workers count it
    if (!call.refusal_.ok()) return call.Finish(call.refusal_);
    const SearchPipeline& pipeline = call.stream_.pipeline_;
    switch (call.message_->request_case()) {
      case v1::SearchStreamRequest::kSearch:
        return HandleSearch(pipeline, call, call.message_->search());
      case v1::SearchStreamRequest::kRecommend:
        return HandleRecommend(pipeline, call, call.message_->recommend());
      case v1::SearchStreamRequest::REQUEST_NOT_SET:
        return call.Finish(
            Guarded([] { return Refuse({"request"}, "not set; set search or recommend"); }));
    }
  }

  void ReleaseRequest() override {
    message_ = nullptr;
    arena_.Reset();
  }
  // REQUIRES: !status.ok(): a message is answered by a Reply or by an error.
  void Finish(const absl::Status& status) override { End(status, SerializeError(status)); }
  std::uint64_t BytesWith(const Reply& reply) const override { return Tagged(reply).bytes(); }
  void FinishWith(const Reply& reply) override {
    auto message = Serialize([&] { return SerializeReply(Tagged(reply), reply_limit()); });
    if (!message.ok()) return Finish(message.status());
    End(absl::OkStatus(), *std::move(message));
  }

 private:
  TaggedReply Tagged(const Reply& reply) const {
    const int field = is_search_ ? v1::SearchStreamResponse::kSearchFieldNumber
                                 : v1::SearchStreamResponse::kRecommendFieldNumber;
    return {tag_, field, reply};
  }
  ReplyMessage SerializeError(const absl::Status& status) {
    ReplyMessage message;
    static_cast<void>(Guarded([&] {
      v1::SearchStreamResponse answer;
      answer.set_tag(tag_);
      *answer.mutable_error() = EncodeError(status, request_id());
      ReplyLimit limit = reply_limit();
      limit.bytes_max = environment().limits.reply_bytes_max;  // an error fits always
      auto serialized = SerializeMessage(answer, limit);
      if (!serialized.ok()) {  // replies that wait to be read leave no memory for it
        Shorten(*answer.mutable_error());
        serialized = SerializeMessage(answer, limit);
      }
      if (serialized.ok()) message = *serialized;
      return serialized.status();
    }));
    return message;
  }

  void End(const absl::Status& status, ReplyMessage message) {
    record().Ended(status);
    SearchStream& stream = stream_;
    const std::uint64_t number = number_;
    delete this;  // its memory first: the answer may wait long
    stream.Complete(number, std::move(message));
  }

  SearchStream& stream_;
  const std::uint64_t number_;  // of the message, and in the window
  google::protobuf::Arena arena_;
  v1::SearchStreamRequest* message_;  // null once it is released
  std::uint64_t tag_ = 0;             // of the message
  bool is_search_ = false;
  std::uint64_t bytes_ = 0;  // of the message
  std::uint64_t large_bytes_ = 0;
  absl::Status refusal_;
  UnsentReplies::Part counted_;  // a large message, while it waits
};

absl::Status SearchStream::BeginWith(net::ReceivedMessage /*none*/) {
  if (!record().admission().ok()) return record().admission();
  Advance();
  return absl::OkStatus();
}

void SearchStream::Received(std::optional<net::ReceivedMessage> message) {
  if (message) incoming_ = *std::move(message);
  const std::size_t bytes = message ? incoming_.size() : 0;
  if (bytes <= kParsedAtOnceBytesMax) return TakeRead(message.has_value());
  {
    const std::lock_guard lock(mutex_);
    parsing_ = true;
  }
  const absl::Status posted = Post([this, self = shared_from_this()] { TakeRead(true); },
                                   {record().caller(), bytes, ParsedBytesMax(bytes)});
  if (posted.ok()) return;
  incoming_ = {};
  EndReading(posted);
  Advance();
}

void SearchStream::TakeRead(bool received) {
  std::unique_ptr<Request> request;
  const absl::Status parsed = received ? ParseRequest(request) : absl::OkStatus();
  EndReading(parsed, !received, std::move(request));
  Advance();
}

void SearchStream::EndReading(const absl::Status& status, bool reads_ended,
                              std::unique_ptr<Request> request) {
  const std::lock_guard lock(mutex_);
  reading_ = false;
  parsing_ = false;
  reads_ended_ = reads_ended;
  if (!status.ok()) EndWith(status);
  if (request != nullptr && !is_ending()) waiting_ = std::move(request);
  if (messages_read_ == 1) window_.SetAsCompleted(order_.as_completed());
}

absl::Status SearchStream::ParseRequest(std::unique_ptr<Request>& request) {
  return Guarded([&] {
    auto read = std::make_unique<Request>(*this, ++messages_read_);
    const net::ReceivedMessage message = std::move(incoming_);
    absl::Status parsed = read->Parse(message.text());
    if (parsed.ok()) {
      read->Check(order_);
      request = std::move(read);
    }
    return parsed;
  });
}

void SearchStream::OnSent() {
  window_.Sent(*window_.NextToSend());
  environment().metrics.AddRequestsInFlight(-1);
}

void SearchStream::Stop() {
  Change([&] {
    // A caller that has sent all its messages still gets its answers. One that is still sending
    // them may finish: gRPC's clients repeat a call on another server by themselves only before
    // its first answer.
    const bool reads = !reads_ended_ || waiting_ != nullptr;
    const bool is_idle = !parsing_ && waiting_ == nullptr && window_.empty() &&
                         window_.next_number() == number_at_stop_;
    if (reads && (is_idle || ++stops_ > kStopsMax)) EndWith(StoppingError());
    number_at_stop_ = window_.next_number();
  });
}

void SearchStream::Complete(std::uint64_t number, ReplyMessage answer) {
  // Once the answer is sent, nothing else may hold the stream.
  const auto self = shared_from_this();
  const bool is_valid = answer != nullptr;
  if (!is_valid) Cut();
  {
    const std::lock_guard lock(mutex_);
    // Without memory for even the error, the stream cannot go on.
    if (!is_valid) EndWith(base::OutOfMemory());
    broken_ = broken_ || !is_valid;
    answers_.find(number)->second = std::move(answer);
    window_.Complete(number);
  }
  // Not Advance: it would take a request, and requests that complete at once would nest their
  // calls.
  AskTransport();
}

void SearchStream::Advance() {
  for (;;) {
    std::unique_lock lock(mutex_);
    auto request = TakeWaiting();
    if (request == nullptr) break;
    const std::uint64_t number = request->number();
    const absl::Status taken = Guarded([&] {
      answers_.try_emplace(number);  // filled by Complete, which must not fail
      window_.Add(request->reply_bytes());
    });
    if (!taken.ok()) {
      answers_.erase(number);
      EndWith(taken);
      break;
    }
    lock.unlock();
    environment().metrics.AddRequestsInFlight(1);
    AnswerRequest(std::move(request));
  }
  AskTransport();
}

void SearchStream::AnswerRequest(std::unique_ptr<Request> request) {
  const std::uint64_t bytes = request->large_bytes();
  if (bytes == 0 || !net::OnLoopThread()) return Request::Run(std::move(request));
  // The request waited until an answer was sent. The stream lives until the request has finished.
  Request* const call = request.release();
  const absl::Status posted =
      Post([call] { Request::Run(std::unique_ptr<Request>(call)); }, {call->caller(), 0, bytes});
  if (posted.ok()) return;
  call->SetRefusal(posted);
  Request::Run(std::unique_ptr<Request>(call));
}

std::unique_ptr<SearchStream::Request> SearchStream::TakeWaiting() {
  if (is_ending()) waiting_.reset();
  if (waiting_ == nullptr || !window_.Admits(waiting_->reply_bytes())) return nullptr;
  return std::move(waiting_);
}

void SearchStream::AskTransport() {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  if (broken_) DropAnswers();
  if (const auto number = writing_ ? std::nullopt : window_.NextToSend()) {
    const auto answer = answers_.find(*number);
    SendNow(std::move(answer->second));
    answers_.erase(answer);
  }
  const bool reads = !reads_ended_ && !is_ending();
  if (reads && !reading_ && waiting_ == nullptr && window_.has_place()) {
    reading_ = true;
    WantMessage();
  }
  if (!reads && waiting_ == nullptr && window_.empty()) FinishNow();
}

void SearchStream::DropAnswers() {
  while (const auto number = writing_ ? std::nullopt : window_.NextToSend()) {
    answers_.erase(*number);
    window_.Sent(*number);
    environment().metrics.AddRequestsInFlight(-1);
  }
}

}  // namespace

std::unique_ptr<Method> SearchStreamMethod(RpcEnvironment& environment, const MethodRow& row,
                                           const SearchPipeline& pipeline) {
  return std::make_unique<StreamMethod<SearchStream, const SearchPipeline&>>(
      environment, row, Method::Type::kBidiStream, pipeline);
}

}  // namespace simile::service
