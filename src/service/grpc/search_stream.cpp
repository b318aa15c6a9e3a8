#include "service/grpc/search_stream.h"

#include <cstddef>
#include <utility>

#include <google/protobuf/arena.h>

#include "service/error_encoding.h"
#include "service/grpc/server_call.h"
#include "service/guarded.h"
#include "service/refuse.h"
#include "service/search_handlers.h"
#include "service/wire_writer.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

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
      : Method(environment, row, Type::BIDI_STREAMING),
        shared_{environment, identity(), pipeline} {}

  void TakeCalls(MethodService& service, int index, net::IoThread& thread) override {
    for (std::size_t i = 0; i < row().posted; ++i) {
      SearchStream::Ask(shared_, {service, index, thread});
    }
  }

 private:
  const SearchStream::Shared shared_;
};

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
      : ServerCall<Call>(stream.environment_, stream.record_->OfMessage(number),
                         stream.cancelled_.get_token()),
        stream_(stream),
        message_(*google::protobuf::Arena::CreateMessage<v1::SearchStreamRequest>(&arena_)) {}

  // Errors: those of ParseMessage; kQueueFull when what callers have not read leaves no memory for
  // a large one, which may wait until its answer has a place.
  absl::Status Parse(grpc::ByteBuffer& bytes) {
    const std::size_t length = bytes.Length();
    return Guarded([&] {
      absl::Status parsed = ParseMessage(bytes, message_);
      if (!parsed.ok() || length <= kParsedAtOnceBytesMax) return parsed;
      const std::uint64_t taken = length + arena_.SpaceAllocated();
      ResolveWorkers::NeedsOnly(taken);
      return CountUnsent(taken, reply_limit(), counted_);
    });
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
    call.counted_ = {};  // from now on by those who work on it
    if (!call.refusal_.ok()) return call.Finish(call.refusal_);
    const SearchPipeline& pipeline = call.stream_.shared_.pipeline;
    switch (call.message_.request_case()) {
      case v1::SearchStreamRequest::kSearch:
        return HandleSearch(pipeline, call, call.message_.search());
      case v1::SearchStreamRequest::kRecommend:
        return HandleRecommend(pipeline, call, call.message_.recommend());
      case v1::SearchStreamRequest::REQUEST_NOT_SET:
        return call.Finish(
            Guarded([] { return Refuse({"request"}, "not set; set search or recommend"); }));
    }
  }

  // REQUIRES: !status.ok(): a message is answered by a Reply or by an error.
  void Finish(const absl::Status& status) override { End(status, SerializeError(status)); }
  void FinishWith(const Reply& reply) override {
    const int field = message_.has_search() ? v1::SearchStreamResponse::kSearchFieldNumber
                                            : v1::SearchStreamResponse::kRecommendFieldNumber;
    grpc::ByteBuffer bytes;
    const absl::Status end = Serialize(
        [&] { return SerializeReply(TaggedReply(message_.tag(), field, reply), reply_limit()); },
        bytes);
    if (!end.ok()) return Finish(end);
    End(end, std::move(bytes));
  }

 private:
  grpc::ByteBuffer SerializeError(const absl::Status& status) {
    grpc::ByteBuffer bytes;
    static_cast<void>(Guarded([&] {
      v1::SearchStreamResponse answer;
      answer.set_tag(message_.tag());
      *answer.mutable_error() = EncodeError(status, request_id());
      // An error fits always.
      auto serialized = SerializeMessage(answer, {environment().limits.reply_bytes_max});
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
  v1::SearchStreamRequest& message_;
  std::uint64_t number_ = 0;
  absl::Status refusal_;
  UnsentReplies::Part counted_;  // a large message, while it waits
};

void SearchStream::Ask(const Shared& shared, const Source& source) {
  const std::shared_ptr<SearchStream> stream(new SearchStream(shared, source));
  stream->context_.AsyncNotifyWhenDone(stream->done_event_.tag());
  grpc::ServerCompletionQueue& queue = source.thread.queue();
  source.service.RequestAsyncBidiStreaming(source.index, &stream->context_, &stream->stream_,
                                           &queue, &queue, stream->arrived_event_.tag());
  // Not before: it may throw. The stream cannot arrive before, on the thread that asks for it.
  stream->self_ = stream;
}

SearchStream::SearchStream(const Shared& shared, const Source& source)
    : shared_(shared),
      environment_(shared.environment),
      source_(source),
      window_({environment_.limits.stream_requests_max, environment_.limits.reply_bytes_max}) {}

void SearchStream::AskForNext() {
  asked_for_next_ = Guarded([this] {
                      Ask(shared_, source_);
                      return absl::OkStatus();
                    }).ok();
}

void SearchStream::OnArrived(bool ok) {
  const std::shared_ptr<SearchStream> self = shared_from_this();
  if (!ok) return self_.reset();  // the server has shut down
  AskForNext();
  const absl::Status made = Guarded([this] {
    record_.emplace(environment_, context_, shared_.identity);
    return absl::OkStatus();
  });
  if (!made.ok()) {  // no memory for it: without an operation only OnDone follows
    finished_ = true;
    context_.TryCancel();
  }
  source_.thread.Add(*this);
  Advance();
}

void SearchStream::OnRead(bool ok) {
  EndOperation();
  const std::shared_ptr<SearchStream> self = shared_from_this();
  const std::size_t bytes = ok ? incoming_.Length() : 0;
  if (bytes > kParsedAtOnceBytesMax) {
    PostRead(bytes);
  } else {
    TakeRead(ok);
  }
  ReleaseIfOver();
}

void SearchStream::PostRead(std::size_t bytes) {
  const absl::Status posted = Guarded([&] {
    return PostToWorkers(environment_.workers,
                         [self = shared_from_this()] { self->TakeRead(true); },
                         {record_->caller(), bytes, ParsedBytesMax(bytes)});
  });
  if (posted.ok()) return;
  CountRefusal(environment_.metrics, posted);
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
  EndOperation();
  ClearTakeDeadline();
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    outgoing_.Clear();
    broken_ = broken_ || !ok;
    window_.Sent(sending_);
  }
  environment_.metrics.AddRequestsInFlight(-1);
  Advance();
  ReleaseIfOver();
}

void SearchStream::OnFinished(bool /*ok*/) {
  EndOperation();
  ClearTakeDeadline();
  ReleaseIfOver();
}

void SearchStream::OnDone(bool /*ok*/) {
  is_done_ = true;
  if (context_.IsCancelled()) {
    cancelled_.request_stop();
    {
      const std::lock_guard lock(mutex_);
      broken_ = true;
    }
    Advance();
  }
  ReleaseIfOver();
}

void SearchStream::EndOperation() {
  const std::lock_guard lock(mutex_);
  --operations_;
}

void SearchStream::ReleaseIfOver() {
  {
    const std::lock_guard lock(mutex_);
    if (!is_done_ || !finished_ || operations_ > 0) return;
  }
  if (!asked_for_next_) AskForNext();
  source_.thread.Remove(*this);
  const std::shared_ptr<SearchStream> self = std::move(self_);  // perhaps the last of it
}

void SearchStream::Stop() {
  {
    const std::lock_guard lock(mutex_);
    // A caller that has sent all its messages still gets its answers.
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
  const bool is_valid = answer.Valid();
  {
    const std::lock_guard lock(mutex_);
    // Without memory for even the error, the stream cannot go on.
    broken_ = broken_ || !is_valid;
    answers_.find(number)->second.Swap(&answer);
    window_.Complete(number);
  }
  if (!is_valid) context_.TryCancel();
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
      return absl::OkStatus();
    });
    if (!taken.ok()) {
      answers_.erase(number);
      EndWith(taken);
      break;
    }
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
      ++operations_;
      return Operation::kWrite;
    }
  }
  const bool ending = reads_ended_ || end_.has_value() || broken_;
  if (!reading_ && !ending && waiting_ == nullptr && window_.has_place()) {
    reading_ = true;
    ++operations_;
    return Operation::kRead;
  }
  if (ending && waiting_ == nullptr && window_.empty()) {
    finished_ = true;
    ++operations_;
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
      return stream_.Read(&incoming_, read_event_.tag());
    case Operation::kWrite:
      SetTakeDeadline(TakeDeadline(environment_, environment_.clock.Now()));
      return stream_.Write(outgoing_, written_event_.tag());
    case Operation::kFinish: {
      const absl::Status end = end_.value_or(absl::OkStatus());
      if (!end.ok()) record_->Ended(end);
      SetTakeDeadline(TakeDeadline(environment_, environment_.clock.Now()));
      return stream_.Finish(GrpcStatus(end, *record_, context_), finished_event_.tag());
    }
    case Operation::kNone:
      return;
  }
}

}  // namespace simile::service
