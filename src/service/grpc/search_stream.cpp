#include "service/grpc/search_stream.h"

#include <utility>

#include <google/protobuf/arena.h>

#include "service/error_encoding.h"
#include "service/grpc/server_call.h"
#include "service/guarded.h"
#include "service/refuse.h"
#include "service/search_handlers.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

constexpr std::string_view kMethod = "simile.v1.SearchService/SearchStream";

}  // namespace

// One message of the stream: a call of its own, whose response goes out with its tag. Deletes
// itself when it finishes.
class SearchStream::Request final : public ServerCall<Call> {
 public:
  Request(SearchStream& stream, std::uint64_t number)
      : ServerCall<Call>(stream.environment_, stream.record_.OfMessage(number), stream.cancelled_),
        stream_(stream),
        message_(*google::protobuf::Arena::CreateMessage<v1::SearchStreamRequest>(&arena_)),
        answer_(*google::protobuf::Arena::CreateMessage<v1::SearchStreamResponse>(&arena_)) {}

  absl::Status Parse(grpc::ByteBuffer& bytes) {
    return Guarded([&] { return ParseMessage(bytes, message_); });
  }
  // Checks what the message says of itself and of the stream.
  void Check(StreamOrder& order) {
    refusal_ = order.Agree(message_);
    const auto timeout = ValidateTimeout(message_, environment().limits);
    if (timeout.ok()) SetDeadline(arrived_at() + *timeout);
    if (refusal_.ok()) refusal_ = timeout.status();
  }
  std::uint64_t reply_bytes() const { return ReplyBytesMax(message_, environment().limits); }

  // Answers the request, now or later. `request` is gone after that.
  static void Run(std::unique_ptr<Request> request, std::uint64_t number) {
    Request& call = *request.release();
    call.number_ = number;
    if (!call.refusal_.ok()) return call.Finish(call.refusal_);
    const SearchPipeline& pipeline = call.stream_.pipeline_;
    switch (call.message_.request_case()) {
      case v1::SearchStreamRequest::kSearch:
        return HandleSearch(pipeline, call, call.message_.search(), *call.answer_.mutable_search());
      case v1::SearchStreamRequest::kRecommend:
        return HandleRecommend(pipeline, call, call.message_.recommend(),
                               *call.answer_.mutable_recommend());
      case v1::SearchStreamRequest::REQUEST_NOT_SET:
        return call.Finish(Refuse({"request"}, "not set; set search or recommend"));
    }
  }

  void Finish(const absl::Status& status) override {
    std::unique_ptr<Request> self(this);
    absl::Status end = status;
    grpc::ByteBuffer bytes;
    if (end.ok()) end = Serialize(reply_limit(), bytes);
    if (!end.ok()) {
      answer_.Clear();
      *answer_.mutable_error() = EncodeError(end, request_id());
      // An error fits always.
      static_cast<void>(Serialize({environment().limits.reply_bytes_max}, bytes));
    }
    record().Ended(end);
    SearchStream& stream = stream_;
    const std::uint64_t number = number_;
    self.reset();  // its memory first: the answer may wait long
    stream.Complete(number, std::move(bytes));
  }

 private:
  absl::Status Serialize(const ReplyLimit& limit, grpc::ByteBuffer& bytes) {
    return Guarded([&] {
      answer_.set_tag(message_.tag());
      auto serialized = SerializeMessage(answer_, limit);
      if (serialized.ok()) bytes.Swap(&*serialized);
      return serialized.status();
    });
  }

  SearchStream& stream_;
  google::protobuf::Arena arena_;
  v1::SearchStreamRequest& message_;
  v1::SearchStreamResponse& answer_;
  std::uint64_t number_ = 0;
  absl::Status refusal_;
};

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* SearchStream::Start(
    RpcEnvironment& environment, grpc::CallbackServerContext& context,
    const SearchPipeline& pipeline) {
  const std::shared_ptr<SearchStream> stream(new SearchStream(environment, context, pipeline));
  stream->self_ = stream;
  stream->Begin();
  return stream.get();
}

SearchStream::SearchStream(RpcEnvironment& environment, grpc::CallbackServerContext& context,
                           const SearchPipeline& pipeline)
    : environment_(environment),
      context_(context),
      pipeline_(pipeline),
      record_(environment, context, kMethod),
      cancelled_(std::make_shared<std::atomic<bool>>(false)),
      window_({environment.limits.stream_requests_max, environment.limits.reply_bytes_max}) {}

void SearchStream::Begin() {
  ticket_ = environment_.gate.EnterUntilClosed([stream = weak_from_this()] {
    if (const auto open = stream.lock()) open->Stop();
  });
  if (!ticket_) {
    environment_.metrics.CountRejected(observe::Rejection::kDraining);
    const std::lock_guard lock(mutex_);
    EndWith(StoppingError());
  }
  Advance();
}

void SearchStream::OnReadDone(bool received) {
  std::unique_ptr<Request> request;
  const absl::Status parsed = received ? ParseRequest(request) : absl::OkStatus();
  {
    const std::lock_guard lock(mutex_);
    reading_ = false;
    reads_ended_ = !received;
    if (!parsed.ok()) EndWith(parsed);
    if (request != nullptr && !end_ && !broken_) waiting_ = std::move(request);
    if (messages_read_ == 1) window_.SetAsCompleted(order_.as_completed());
  }
  Advance();
}

absl::Status SearchStream::ParseRequest(std::unique_ptr<Request>& request) {
  return Guarded([&] {
    auto read = std::make_unique<Request>(*this, ++messages_read_);
    absl::Status parsed = read->Parse(incoming_);
    if (parsed.ok()) {
      read->Check(order_);
      request = std::move(read);
    }
    return parsed;
  });
}

void SearchStream::OnWriteDone(bool sent) {
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    outgoing_.Clear();
    broken_ = broken_ || !sent;
    window_.Sent(sending_);
  }
  environment_.metrics.AddRequestsInFlight(-1);
  Advance();
}

void SearchStream::OnCancel() {
  cancelled_->store(true, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    broken_ = true;
  }
  Advance();
}

void SearchStream::Stop() {
  {
    const std::lock_guard lock(mutex_);
    // A caller that has sent all is only owed its answers.
    if (!reads_ended_ || waiting_ != nullptr) EndWith(StoppingError());
  }
  Advance();
}

void SearchStream::EndWith(const absl::Status& status) {
  if (!end_ && !finished_) end_ = status;
}

void SearchStream::Complete(std::uint64_t number, grpc::ByteBuffer answer) {
  // Once the answer is sent, nothing else may hold the stream.
  const std::shared_ptr<SearchStream> self = shared_from_this();
  {
    const std::lock_guard lock(mutex_);
    answers_[number].Swap(&answer);
    window_.Complete(number);
  }
  // Takes no request, which would nest calls of requests that complete at once.
  StartOperations();
}

void SearchStream::Advance() {
  // The stream may end on another thread as soon as this one has started something.
  const std::shared_ptr<SearchStream> self = shared_from_this();
  for (;;) {
    std::unique_lock lock(mutex_);
    auto request = TakeWaiting();
    if (request == nullptr) break;
    const std::uint64_t number = window_.Add(request->reply_bytes());
    lock.unlock();
    environment_.metrics.AddRequestsInFlight(1);
    Request::Run(std::move(request), number);
  }
  StartOperations();
}

void SearchStream::StartOperations() {
  std::unique_lock lock(mutex_);
  // Only one thread at a time starts operations, so that none is started after the end. It looks
  // again when it is done, and so sees what other threads changed meanwhile.
  if (performing_) return;
  performing_ = true;
  for (Operation next = NextOperation(); next != Operation::kNone; next = NextOperation()) {
    lock.unlock();
    Perform(next);
    lock.lock();
  }
  performing_ = false;
}

std::unique_ptr<SearchStream::Request> SearchStream::TakeWaiting() {
  if (end_ || broken_) waiting_.reset();
  if (waiting_ == nullptr || !window_.Admits(waiting_->reply_bytes())) return nullptr;
  return std::move(waiting_);
}

SearchStream::Operation SearchStream::NextOperation() {
  if (finished_) return Operation::kNone;
  if (broken_) DropAnswers();
  if (!writing_) {
    if (const auto number = window_.NextToSend()) {
      sending_ = *number;
      outgoing_.Swap(&answers_[*number]);
      answers_.erase(*number);
      writing_ = true;
      return Operation::kWrite;
    }
  }
  const bool ending = reads_ended_ || end_.has_value() || broken_;
  if (!reading_ && !ending && waiting_ == nullptr && window_.has_place()) {
    reading_ = true;
    return Operation::kRead;
  }
  if (ending && waiting_ == nullptr && window_.empty()) {
    finished_ = true;
    return Operation::kFinish;
  }
  return Operation::kNone;
}

void SearchStream::DropAnswers() {
  while (const auto number = window_.NextToSend()) {
    if (writing_ && *number == sending_) return;
    answers_.erase(*number);
    window_.Sent(*number);
    environment_.metrics.AddRequestsInFlight(-1);
  }
}

void SearchStream::Perform(Operation operation) {
  switch (operation) {
    case Operation::kRead:
      return StartRead(&incoming_);
    case Operation::kWrite:
      return StartWrite(&outgoing_);
    case Operation::kFinish: {
      const absl::Status end = end_.value_or(absl::OkStatus());
      if (!end.ok()) record_.Ended(end);
      return Finish(GrpcStatus(end, record_, context_));
    }
    case Operation::kNone:
      return;
  }
}

void SearchStream::OnDone() {
  RpcEnvironment& environment = environment_;
  const std::optional<std::uint64_t> ticket = ticket_;
  std::shared_ptr<SearchStream> self = std::move(self_);
  self.reset();
  if (ticket) environment.gate.Leave(*ticket);
}

}  // namespace simile::service
