#include "service/grpc/export_stream.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <google/protobuf/arena.h>

#include "base/error_detail.h"
#include "service/grpc/server_call.h"
#include "service/guarded.h"
#include "service/search_handlers.h"

namespace simile::service {
namespace {

// Sources of the first message. The next have twice as many while one takes less than kGrowBelow.
constexpr std::size_t kFirstSize = 64;
constexpr std::chrono::milliseconds kGrowBelow{500};

// What an export that is over has not reached.
constexpr std::string_view kStep = "its next sources were found";

// Whether a message with as many sources fails every time.
bool IsTooLarge(base::ErrorReason reason) {
  // Such as limits.diversity_pairs_per_call_max, of all queries of a call.
  return reason == base::ErrorReason::kInvalidField || reason == base::ErrorReason::kReplyTooLarge;
}

// Whether a message with fewer sources may succeed.
bool MayFit(base::ErrorReason reason) {
  return IsTooLarge(reason) || reason == base::ErrorReason::kDeadlineExceeded ||
         reason == base::ErrorReason::kCallerLimit;
}

class ExportMethodOf final : public Method {
 public:
  ExportMethodOf(RpcEnvironment& environment, const MethodRow& row, const ExportServices& services)
      : Method(environment, row, Type::SERVER_STREAMING), services_(services) {}

 private:
  void AskForCall() override { ExportStream::Ask(*this, services_); }

  const ExportServices services_;
};

}  // namespace

std::unique_ptr<Method> ExportMethod(RpcEnvironment& environment, const MethodRow& row,
                                     const ExportServices& services) {
  return std::make_unique<ExportMethodOf>(environment, row, services);
}

// One message of the stream: a call of its own. Deletes itself when it finishes.
class ExportStream::Message final : public ServerCall<Call> {
 public:
  explicit Message(ExportStream& stream)
      : ServerCall<Call>(stream.environment(), stream.record_->OfMessage(++stream.message_number_),
                         stream.cancelled()),
        stream_(stream) {
    const auto wanted = DeadlineOf(environment(), stream.context(), arrived_at());
    const Clock::TimePoint latest = arrived_at() + environment().limits.search_deadline_max;
    SetDeadline(wanted ? std::min(*wanted, latest) : latest);
  }

  // Begins the export with its first message.
  absl::Status Begin(grpc::ByteBuffer& bytes) {
    const std::size_t length = bytes.Length();
    google::protobuf::Arena arena;  // which bounds what a request takes
    auto& request = *google::protobuf::Arena::CreateMessage<v1::ExportRequest>(&arena);
    absl::Status status = Admit(length);
    if (status.ok()) status = ParseMessage(bytes, request);
    if (status.ok() && length > kParsedAtOnceBytesMax) {
      status = CountUnsent(length + arena.SpaceAllocated(), reply_limit(), stream_.counted_);
    }
    if (!status.ok()) return status;
    const auto collection = access().Permit(request.collection());
    if (!collection.ok()) return collection.status();
    base::LongWork work = Work();
    return stream_.run_.Begin(request, *collection, work);
  }
  // Makes the next sources' request.
  absl::Status Make(std::size_t size) {
    if (!record().admission().ok()) return record().admission();
    const auto collection = access().Permit(stream_.run_.collection());
    if (!collection.ok()) return collection.status();
    base::LongWork work = Work();
    return stream_.run_.MakePart(size, *collection, work);
  }
  // Answers the message, now or later. `message` is gone after the call.
  static void Run(std::unique_ptr<Message> message) {
    Message& call = *message.release();
    HandleExport(call.stream_.services_.pipeline, call, call.stream_.run_);
  }

  std::uint64_t BytesWith(const Reply& reply) const override {
    return ExportReply(stream_.run_, reply).bytes();
  }
  void Finish(const absl::Status& status) override { End(status); }
  void FinishWith(const Reply& reply) override {
    grpc::ByteBuffer bytes;
    const absl::Status made = Serialize(
        [&] { return SerializeReply(ExportReply(stream_.run_, reply), reply_limit()); }, bytes);
    if (!made.ok()) return End(made);
    record().Ended(made);
    End(std::move(bytes));
  }

 private:
  base::LongWork Work() { return WorkOf(*this, *deadline(), environment().clock, kStep); }
  void End(absl::StatusOr<grpc::ByteBuffer> message) {
    ExportStream& stream = stream_;
    const Clock::Duration duration = environment().clock.Now() - arrived_at();
    delete this;  // its memory first: the message may wait long
    stream.Complete(std::move(message), duration);
  }

  ExportStream& stream_;
};

void ExportStream::Ask(Method& method, const ExportServices& services) {
  const std::shared_ptr<ExportStream> stream(new ExportStream(method, services));
  const Method::Source& source = method.source();
  grpc::ServerCompletionQueue& queue = source.thread.queue();
  source.service.RequestAsyncServerStreaming(source.index, &stream->context(), &stream->request_,
                                             &stream->writer_, &queue, &queue,
                                             stream->arrived_tag());
  // Not before: it may throw. The stream cannot arrive before, on the thread that asks for it.
  stream->self_ = stream;
}

ExportStream::ExportStream(Method& method, const ExportServices& services)
    : Exchange(method),
      services_(services),
      run_(services.snapshots, environment().limits),
      size_(std::min<std::size_t>(kFirstSize, environment().limits.queries_per_call_max)),
      size_max_(environment().limits.queries_per_call_max) {}

absl::Status ExportStream::Begin() {
  if (!record_->admission().ok()) return record_->admission();
  if (thread().stopping()) return StoppingError();
  Advance();
  return absl::OkStatus();
}

void ExportStream::Reject(const absl::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    EndWith(status);
  }
  Advance();
}

void ExportStream::Release() {
  const std::shared_ptr<ExportStream> self = std::move(self_);  // perhaps the last of it
}

void ExportStream::OnCallerGone() {
  {
    const std::lock_guard lock(mutex_);
    broken_ = true;
  }
  Advance();
}

void ExportStream::Stop() {
  {
    const std::lock_guard lock(mutex_);
    if (!finished_) EndWith(StoppingError());
  }
  Advance();
}

void ExportStream::OnWritten(bool ok) {
  ClearTakeDeadline();
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    outgoing_.Clear();
    broken_ = broken_ || !ok;
  }
  Advance();
  EndOperation();
}

void ExportStream::Advance() {
  // The stream may end on another thread as soon as this one has started something.
  const std::shared_ptr<ExportStream> self = shared_from_this();
  for (;;) {
    std::unique_lock lock(mutex_);
    const Operation next = NextOperation();
    lock.unlock();
    if (next == Operation::kNone) return;
    Perform(next);
  }
}

ExportStream::Operation ExportStream::NextOperation() {
  if (ended_) return Operation::kNone;
  if (broken_) ready_.reset();
  if (ready_ && !writing_) {
    outgoing_.Swap(&*ready_);
    ready_.reset();
    writing_ = true;
    AddOperation();
    return Operation::kWrite;
  }
  const bool ending = finished_ || end_.has_value() || broken_;
  if (!ending && !computing_ && !ready_) {
    computing_ = true;
    return Operation::kCompute;
  }
  if (ending && !computing_ && !writing_ && !ready_) {
    ended_ = true;
    return Operation::kEnd;
  }
  return Operation::kNone;
}

void ExportStream::Perform(Operation operation) {
  switch (operation) {
    case Operation::kCompute: {
      const std::size_t bytes = begun_ ? 0 : request_.Length();
      const bool is_large = bytes > kParsedAtOnceBytesMax;
      const absl::Status posted =
          Post([self = shared_from_this()] { self->Compute(); },
               {record_->caller(), bytes, is_large ? ParsedBytesMax(bytes) : 0});
      if (posted.ok()) return;
      const std::lock_guard lock(mutex_);
      computing_ = false;
      return EndWith(posted);
    }
    case Operation::kWrite:
      ExpectTaken(environment().clock.Now());
      return writer_.Write(outgoing_, written_event_.tag());
    case Operation::kEnd: {
      const absl::Status end = end_.value_or(absl::OkStatus());
      if (!end.ok()) record_->Ended(end);
      return SendEnd(GrpcStatus(end, *record_, context()));
    }
    case Operation::kNone:
      return;
  }
}

void ExportStream::SendEnd(const grpc::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ExpectTaken(environment().clock.Now());
  writer_.Finish(status, end_tag());
}

void ExportStream::Compute() {
  std::size_t size = 0;
  {
    const std::lock_guard lock(mutex_);
    size = size_;
  }
  std::unique_ptr<Message> message;
  const absl::Status made = Guarded([&] {
    message = std::make_unique<Message>(*this);
    absl::Status status = begun_ ? absl::OkStatus() : message->Begin(request_);
    begun_ = begun_ || status.ok();
    if (!status.ok() || run_.done()) return status;
    return message->Make(size);
  });
  if (made.ok() && !run_.done()) return Message::Run(std::move(message));
  message.reset();
  {
    const std::lock_guard lock(mutex_);
    computing_ = false;
    finished_ = made.ok();
    if (!made.ok()) EndWith(made);
  }
  Advance();
}

void ExportStream::Complete(absl::StatusOr<grpc::ByteBuffer> message, Clock::Duration duration) {
  // The stream may end on another thread as soon as nothing is computed.
  const std::shared_ptr<ExportStream> self = shared_from_this();
  {
    const std::lock_guard lock(mutex_);
    computing_ = false;
    FitSize(message.status(), duration);
    if (message.ok()) {
      run_.FinishPart();
      finished_ = run_.done();
      ready_.emplace().Swap(&*message);
    }
  }
  Advance();
}

void ExportStream::FitSize(const absl::Status& status, Clock::Duration duration) {
  if (status.ok()) {
    if (duration < kGrowBelow) size_ = std::min(2 * size_, size_max_);
    return;
  }
  const base::ErrorReason reason = base::ReasonOf(status);
  if (!MayFit(reason) || size_ == 1) return EndWith(status);
  size_ /= 2;
  if (IsTooLarge(reason)) size_max_ = size_;
}

void ExportStream::EndWith(const absl::Status& status) {
  if (!end_ && !ended_) end_ = status;
}

}  // namespace simile::service
