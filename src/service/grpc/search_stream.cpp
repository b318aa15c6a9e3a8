#include "service/grpc/search_stream.h"

#include <cstddef>
#include <utility>

#include <google/protobuf/arena.h>

#include "google/rpc/status.pb.h"
#include "service/error_encoding.h"
#include "service/grpc/server_call.h"
#include "service/guarded.h"
#include "service/refuse.h"
#include "service/search_handlers.h"
#include "service/wire_writer.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

// After so many calls of Stop(), one each net::IoThread::kStopInterval, a stopping server takes no
// further request of a stream however busy it is.
constexpr int kStopsMax = 10;

// A reply as the answer of a message of the stream: its tag and its field around the same bytes.
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

class SearchStreamMethodOf final : public Method {
 public:
  SearchStreamMethodOf(RpcEnvironment& environment, const MethodRow& row,
                       const SearchPipeline& pipeline)
      : Method(environment, row, Type::BIDI_STREAMING), pipeline_(pipeline) {}

 private:
  void AskForCall() override { SearchStream::Ask(*this, pipeline_); }

  const SearchPipeline& pipeline_;
};

// Makes an error so small that its reply counts in no budget.
void Shorten(google::rpc::Status& error) {
  constexpr std::size_t kMessageBytesMax = kUncountedReplyBytes - 64;
  error.clear_details();
  if (error.message().size() <= kMessageBytesMax) return;
  error.set_message("replies that wait to be read leave no memory for the text of this error");
}

}  // namespace

std::unique_ptr<Method> SearchStreamMethod(RpcEnvironment& environment, const MethodRow& row,
                                           const SearchPipeline& pipeline) {
  return std::make_unique<SearchStreamMethodOf>(environment, row, pipeline);
}

// One message of the stream: a call of its own, whose response goes out with its tag. Deletes
// itself when it finishes.
class SearchStream::Request final : public ServerCall<Call> {
 public:
  Request(SearchStream& stream, std::uint64_t number)
      : ServerCall<Call>(stream.environment(), stream.record_->OfMessage(number),
                         stream.cancelled()),
        stream_(stream),
        message_(google::protobuf::Arena::CreateMessage<v1::SearchStreamRequest>(&arena_)) {}

  // Errors: those of ParseMessage; kQueueFull when what callers have not read leaves no memory for
  // a large one, which may wait until its answer has a place.
  absl::Status Parse(grpc::ByteBuffer& bytes) {
    const std::size_t length = bytes.Length();
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
  // Checks what the message says of itself and of the stream.
  void Check(StreamOrder& order) {
    refusal_ = Admit(bytes_);
    if (refusal_.ok()) refusal_ = order.Agree(*message_);
    const auto timeout = ValidateTimeout(*message_, environment().limits);
    if (timeout.ok()) SetDeadline(arrived_at() + *timeout);
    if (refusal_.ok()) refusal_ = timeout.status();
  }
  // What a large message takes; 0 for others.
  std::uint64_t large_bytes() const { return large_bytes_; }
  void SetRefusal(const absl::Status& refusal) { refusal_ = refusal; }
  std::uint64_t reply_bytes() const { return ReplyBytesMax(*message_, environment().limits); }

  // Answers the request, now or later. `request` is gone after that.
  static void Run(std::unique_ptr<Request> request, std::uint64_t number) {
    Request& call = *request.release();
    call.number_ = number;
    call.counted_ = {};  // from now on by those who work on it
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
    grpc::ByteBuffer bytes;
    const absl::Status end =
        Serialize([&] { return SerializeReply(Tagged(reply), reply_limit()); }, bytes);
    if (!end.ok()) return Finish(end);
    End(end, std::move(bytes));
  }

 private:
  TaggedReply Tagged(const Reply& reply) const {
    const int field = is_search_ ? v1::SearchStreamResponse::kSearchFieldNumber
                                 : v1::SearchStreamResponse::kRecommendFieldNumber;
    return {tag_, field, reply};
  }
  grpc::ByteBuffer SerializeError(const absl::Status& status) {
    grpc::ByteBuffer bytes;
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
      if (serialized.ok()) bytes.Swap(&*serialized);
      return serialized.status();
    }));
    return bytes;
  }

  void End(const absl::Status& status, grpc::ByteBuffer bytes) {
    record().Ended(status);
    SearchStream& stream = stream_;
    const std::uint64_t number = number_;
    delete this;  // its memory first: the answer may wait long
    stream.Complete(number, std::move(bytes));
  }

  SearchStream& stream_;
  google::protobuf::Arena arena_;
  v1::SearchStreamRequest* message_;  // null once it is released
  std::uint64_t tag_ = 0;             // of the message
  bool is_search_ = false;
  std::uint64_t number_ = 0;
  std::uint64_t bytes_ = 0;  // of the message
  std::uint64_t large_bytes_ = 0;
  absl::Status refusal_;
  UnsentReplies::Part counted_;  // a large message, while it waits
};

void SearchStream::Ask(Method& method, const SearchPipeline& pipeline) {
  const std::shared_ptr<SearchStream> stream(new SearchStream(method, pipeline));
  const Method::Source& source = method.source();
  grpc::ServerCompletionQueue& queue = source.thread.queue();
  source.service.RequestAsyncBidiStreaming(source.index, &stream->context(), &stream->stream_,
                                           &queue, &queue, stream->arrived_tag());
  // Not before: it may throw. The stream cannot arrive before, on the thread that asks for it.
  stream->self_ = stream;
}

SearchStream::SearchStream(Method& method, const SearchPipeline& pipeline)
    : Exchange(method),
      pipeline_(pipeline),
      window_({environment().limits.stream_requests_max, environment().limits.reply_bytes_max}) {}

absl::Status SearchStream::Begin() {
  if (!record_->admission().ok()) return record_->admission();
  Advance();
  return absl::OkStatus();
}

void SearchStream::Reject(const absl::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    EndWith(status);
  }
  Advance();
}

void SearchStream::Release() {
  const std::shared_ptr<SearchStream> self = std::move(self_);  // perhaps the last of it
}

void SearchStream::OnRead(bool ok) {
  const std::size_t bytes = ok ? incoming_.Length() : 0;
  if (bytes > kParsedAtOnceBytesMax) {
    {
      const std::lock_guard lock(mutex_);
      parsing_ = true;
    }
    PostRead(bytes);
  } else {
    TakeRead(ok);
  }
  EndOperation();
}

void SearchStream::PostRead(std::size_t bytes) {
  const absl::Status posted = Post([self = shared_from_this()] { self->TakeRead(true); },
                                   {record_->caller(), bytes, ParsedBytesMax(bytes)});
  if (posted.ok()) return;
  incoming_.Clear();
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
  if (request != nullptr && !end_ && !broken_) waiting_ = std::move(request);
  if (messages_read_ == 1) window_.SetAsCompleted(order_.as_completed());
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

void SearchStream::OnWritten(bool ok) {
  ClearTakeDeadline();
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    outgoing_.Clear();
    broken_ = broken_ || !ok;
    window_.Sent(sending_);
  }
  environment().metrics.AddRequestsInFlight(-1);
  Advance();
  EndOperation();
}

void SearchStream::OnCallerGone() {
  {
    const std::lock_guard lock(mutex_);
    broken_ = true;
  }
  Advance();
}

void SearchStream::SendEnd(const grpc::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ExpectTaken(environment().clock.Now());
  stream_.Finish(status, end_tag());
}

void SearchStream::Stop() {
  {
    const std::lock_guard lock(mutex_);
    // A caller that has sent all its messages still gets its answers. One that is still sending
    // them may finish: gRPC's clients repeat a call on another server by themselves only before
    // its first answer.
    const bool reads = !reads_ended_ || waiting_ != nullptr;
    const bool is_idle = !parsing_ && waiting_ == nullptr && window_.empty() &&
                         window_.next_number() == number_at_stop_;
    if (reads && (is_idle || ++stops_ > kStopsMax)) EndWith(StoppingError());
    number_at_stop_ = window_.next_number();
  }
  Advance();
}

void SearchStream::EndWith(const absl::Status& status) {
  if (!end_ && !ended_) end_ = status;
}

void SearchStream::Complete(std::uint64_t number, grpc::ByteBuffer answer) {
  // Once the answer is sent, nothing else may hold the stream.
  const std::shared_ptr<SearchStream> self = shared_from_this();
  const bool is_valid = answer.Valid();
  {
    const std::lock_guard lock(mutex_);
    // Without memory for even the error, the stream cannot go on.
    broken_ = broken_ || !is_valid;
    answers_.find(number)->second.Swap(&answer);
    window_.Complete(number);
  }
  if (!is_valid) context().TryCancel();
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
    const std::uint64_t number = window_.next_number();
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
    AnswerRequest(std::move(request), number);
  }
  StartOperations();
}

void SearchStream::AnswerRequest(std::unique_ptr<Request> request, std::uint64_t number) {
  const std::uint64_t bytes = request->large_bytes();
  if (bytes == 0 || !net::OnIoThread()) return Request::Run(std::move(request), number);
  // It waited until an answer was sent. The stream is there until it finishes.
  Request* const call = request.release();
  const absl::Status posted =
      Post([call, number] { Request::Run(std::unique_ptr<Request>(call), number); },
           {call->caller(), 0, bytes});
  if (posted.ok()) return;
  call->SetRefusal(posted);
  Request::Run(std::unique_ptr<Request>(call), number);
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
  if (ended_) return Operation::kNone;
  if (broken_) DropAnswers();
  if (!writing_) {
    if (const auto number = window_.NextToSend()) {
      sending_ = *number;
      outgoing_.Swap(&answers_[*number]);
      answers_.erase(*number);
      writing_ = true;
      AddOperation();
      return Operation::kWrite;
    }
  }
  const bool ending = reads_ended_ || end_.has_value() || broken_;
  if (!reading_ && !ending && waiting_ == nullptr && window_.has_place()) {
    reading_ = true;
    AddOperation();
    return Operation::kRead;
  }
  if (ending && waiting_ == nullptr && window_.empty()) {
    ended_ = true;
    return Operation::kEnd;
  }
  return Operation::kNone;
}

void SearchStream::DropAnswers() {
  while (const auto number = window_.NextToSend()) {
    if (writing_ && *number == sending_) return;
    answers_.erase(*number);
    window_.Sent(*number);
    environment().metrics.AddRequestsInFlight(-1);
  }
}

void SearchStream::Perform(Operation operation) {
  switch (operation) {
    case Operation::kRead:
      return stream_.Read(&incoming_, read_event_.tag());
    case Operation::kWrite:
      ExpectTaken(environment().clock.Now());
      return stream_.Write(outgoing_, written_event_.tag());
    case Operation::kEnd: {
      const absl::Status end = end_.value_or(absl::OkStatus());
      if (!end.ok()) record_->Ended(end);
      return SendEnd(GrpcStatus(end, *record_, context()));
    }
    case Operation::kNone:
      return;
  }
}

}  // namespace simile::service
