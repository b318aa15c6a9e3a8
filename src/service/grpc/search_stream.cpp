#include "service/grpc/search_stream.h"

#include <cstddef>
#include <utility>

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>

#include "service/error_encoding.h"
#include "service/grpc/server_call.h"
#include "service/guarded.h"
#include "service/refuse.h"
#include "service/search_handlers.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

using google::protobuf::io::CodedOutputStream;

// A message of more bytes is parsed by a worker: on the I/O thread it would hold up other calls.
constexpr std::size_t kMessageParsedAtOnceBytesMax = 64U << 10;

// A reply as the answer of a message of the stream: its tag and its field around the same bytes.
class TaggedReply final : public Reply {
 public:
  //   field  of SearchStreamResponse
  TaggedReply(std::uint64_t tag, int field, const Reply& reply)
      : tag_(tag), field_(field), reply_(reply), reply_bytes_(reply.bytes()) {}

  std::size_t bytes() const override {
    const std::size_t tag_bytes =
        tag_ == 0 ? 0 : 1 + CodedOutputStream::VarintSize64(tag_);  // a zero is not sent
    return tag_bytes + 1 + CodedOutputStream::VarintSize64(reply_bytes_) + reply_bytes_;
  }
  std::uint8_t* Write(std::uint8_t* out) const override {
    constexpr int kVarint = 0;
    constexpr int kLengthDelimited = 2;
    if (tag_ != 0) {
      out = WriteKey(v1::SearchStreamResponse::kTagFieldNumber, kVarint, out);
      out = CodedOutputStream::WriteVarint64ToArray(tag_, out);
    }
    out = WriteKey(field_, kLengthDelimited, out);
    out = CodedOutputStream::WriteVarint64ToArray(reply_bytes_, out);
    return reply_.Write(out);
  }

 private:
  // One byte: the fields have small numbers.
  static std::uint8_t* WriteKey(int field, int wire_type, std::uint8_t* out) {
    *out = static_cast<std::uint8_t>((field << 3) | wire_type);
    return out + 1;
  }

  const std::uint64_t tag_;
  const int field_;
  const Reply& reply_;
  const std::uint64_t reply_bytes_;
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
    const SearchPipeline& pipeline = call.stream_.shared_.pipeline;
    switch (call.message_.request_case()) {
      case v1::SearchStreamRequest::kSearch:
        return HandleSearch(pipeline, call, call.message_.search());
      case v1::SearchStreamRequest::kRecommend:
        return HandleRecommend(pipeline, call, call.message_.recommend());
      case v1::SearchStreamRequest::REQUEST_NOT_SET:
        return call.Finish(Refuse({"request"}, "not set; set search or recommend"));
    }
  }

  // REQUIRES: !status.ok(): a message is answered by a Reply or by an error.
  void Finish(const absl::Status& status) override { End(status, SerializeError(status)); }
  void FinishWith(const Reply& reply) override {
    const int field = message_.has_search() ? v1::SearchStreamResponse::kSearchFieldNumber
                                            : v1::SearchStreamResponse::kRecommendFieldNumber;
    grpc::ByteBuffer bytes;
    const absl::Status end = Guarded([&]() -> absl::Status {
      if (cancelled().stop_requested()) return CallerGoneError();
      auto serialized = SerializeReply(TaggedReply(message_.tag(), field, reply), reply_limit());
      if (serialized.ok()) bytes.Swap(&*serialized);
      CountRefusal(environment(), serialized.status());
      return serialized.status();
    });
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
};

void SearchStream::Ask(const Shared& shared, const Source& source) {
  const std::shared_ptr<SearchStream> stream(new SearchStream(shared, source));
  stream->self_ = stream;
  stream->context_.AsyncNotifyWhenDone(static_cast<net::IoEvent*>(&stream->done_event_));
  grpc::ServerCompletionQueue& queue = source.thread.queue();
  source.service.RequestAsyncBidiStreaming(source.index, &stream->context_, &stream->stream_,
                                           &queue, &queue,
                                           static_cast<net::IoEvent*>(&stream->arrived_event_));
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
  const bool is_large = ok && incoming_.Length() > kMessageParsedAtOnceBytesMax;
  const bool posted =
      is_large &&
      Guarded([&] { return PostToWorkers(environment_, [self] { self->TakeRead(true); }); }).ok();
  if (!posted) TakeRead(ok);
  ReleaseIfOver();
}

void SearchStream::TakeRead(bool received) {
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

void SearchStream::OnWritten(bool ok) {
  EndOperation();
  IsTaken();
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
  IsTaken();
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
  const bool is_valid = answer.Valid();
  {
    const std::lock_guard lock(mutex_);
    // Without memory for even the error, the stream cannot go on.
    broken_ = broken_ || !is_valid;
    answers_[number].Swap(&answer);
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
      return stream_.Read(&incoming_, static_cast<net::IoEvent*>(&read_event_));
    case Operation::kWrite:
      MustBeTakenBy(TakenBy(environment_, environment_.clock.Now()));
      return stream_.Write(outgoing_, static_cast<net::IoEvent*>(&written_event_));
    case Operation::kFinish: {
      const absl::Status end = end_.value_or(absl::OkStatus());
      if (!end.ok()) record_->Ended(end);
      MustBeTakenBy(TakenBy(environment_, environment_.clock.Now()));
      return stream_.Finish(GrpcStatus(end, *record_, context_),
                            static_cast<net::IoEvent*>(&finished_event_));
    }
    case Operation::kNone:
      return;
  }
}

}  // namespace simile::service
