#include "service/grpc/method.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include <absl/status/status.h>
#include <google/protobuf/arena.h>

#include "base/error_detail.h"
#include "service/calls/call.h"
#include "service/export_run.h"
#include "service/grpc/server_call.h"
#include "service/grpc/stream_exchange.h"
#include "service/handlers.h"

namespace simile::service {
namespace {

// Sources of the first message. The next message has twice as many when a message takes less than
// kGrowBelow.
constexpr std::size_t kFirstSize = 64;
constexpr std::chrono::milliseconds kGrowBelow{500};

// The step that an export has not reached when its caller is gone or its deadline has passed.
constexpr std::string_view kExportStep = "its next sources were found";

// Whether a message with this many sources fails every time.
bool IsTooLarge(base::ErrorReason reason) {
  // Such as limits.diversity_pairs_per_call_max, of all queries of a call.
  return reason == base::ErrorReason::kInvalidField || reason == base::ErrorReason::kReplyTooLarge;
}

// Whether a message with fewer sources may succeed.
bool MayFit(base::ErrorReason reason) {
  return IsTooLarge(reason) || reason == base::ErrorReason::kDeadlineExceeded ||
         reason == base::ErrorReason::kCallerLimit;
}

class ExportStream final : public StreamExchange {
 public:
  ExportStream(Method& method, const ExportServices& services, net::Http2Stream& stream,
               net::CallHead head)
      : StreamExchange(method, stream, std::move(head)),
        services_(services),
        run_(services.snapshots, environment().limits),
        size_(std::min<std::size_t>(kFirstSize, environment().limits.queries_per_call_max)),
        size_max_(environment().limits.queries_per_call_max) {}

 private:
  class Message;

  absl::Status BeginWith(net::ReceivedMessage request) override;
  void Stop() override;
  void Advance() override;
  // On a worker: makes the next message and has it answered.
  void Compute();
  // Takes the message, or the error that it failed with. Any thread.
  void Complete(absl::StatusOr<ReplyMessage> message, Clock::Duration duration);

  // The functions below require that mutex_ is held.
  void StartComputing();
  void FitSize(const absl::Status& status, Clock::Duration duration);

  const ExportServices services_;
  net::ReceivedMessage request_;

  // Of the message under way; used by one thread at a time.
  ExportRun run_;
  bool begun_ = false;
  std::uint64_t message_number_ = 0;
  UnsentReplies::Part counted_;  // a large request

  // Guarded by mutex_.
  std::size_t size_;  // sources of the next message
  std::size_t size_max_;
  bool computing_ = false;
  ReplyMessage ready_;     // to be sent next; null for none
  bool finished_ = false;  // every source is answered
};

// One message of the stream: a call of its own. Deletes itself when it finishes.
class ExportStream::Message final : public ServerCall<Call> {
 public:
  explicit Message(ExportStream& stream)
      : ServerCall<Call>(stream.environment(), stream.record().OfMessage(++stream.message_number_),
                         stream.cancelled()),
        stream_(stream) {
    const auto wanted = stream.head().deadline;
    const Clock::TimePoint latest = arrived_at() + environment().limits.search_deadline_max;
    SetDeadline(wanted ? std::min(*wanted, latest) : latest);
  }

  // Begins the export with its first message.
  absl::Status Begin(const net::ReceivedMessage& bytes) {
    const std::size_t length = bytes.size();
    google::protobuf::Arena arena;  // which bounds what a request takes
    auto& request = *google::protobuf::Arena::CreateMessage<v1::ExportRequest>(&arena);
    absl::Status status = Admit(length);
    if (status.ok()) status = ParseMessage(bytes.text(), request);
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
    auto message =
        Serialize([&] { return SerializeReply(ExportReply(stream_.run_, reply), reply_limit()); });
    if (message.ok()) record().Ended(message.status());
    End(std::move(message));
  }

 private:
  base::LongWork Work() {
    return MakeLongWork(*this, *deadline(), environment().clock, kExportStep);
  }
  void End(absl::StatusOr<ReplyMessage> message) {
    ExportStream& stream = stream_;
    const Clock::Duration duration = environment().clock.Now() - arrived_at();
    delete this;  // its memory first: the message may wait long
    stream.Complete(std::move(message), duration);
  }

  ExportStream& stream_;
};

absl::Status ExportStream::BeginWith(net::ReceivedMessage request) {
  if (!record().admission().ok()) return record().admission();
  if (is_stopping()) return StoppingError();
  request_ = std::move(request);
  Advance();
  return absl::OkStatus();
}

void ExportStream::Stop() {
  Change([&] {
    if (!finished_) EndWith(StoppingError());
  });
}

void ExportStream::Advance() {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  if (broken_) ready_.reset();
  if (ready_ && !writing_) SendNow(std::exchange(ready_, nullptr));
  if (!finished_ && !is_ending() && !computing_ && !ready_) StartComputing();
  if ((finished_ || is_ending()) && !computing_ && !writing_ && !ready_) FinishNow();
}

void ExportStream::StartComputing() {
  const std::size_t bytes = begun_ ? 0 : request_.size();
  const bool is_large = bytes > kParsedAtOnceBytesMax;
  const absl::Status posted =
      Post([this, self = shared_from_this()] { Compute(); },
           {record().caller(), bytes, is_large ? ParsedBytesMax(bytes) : 0});
  computing_ = posted.ok();
  if (!posted.ok()) EndWith(posted);
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
    request_ = {};
    begun_ = begun_ || status.ok();
    if (!status.ok() || run_.done()) return status;
    return message->Make(size);
  });
  if (made.ok() && !run_.done()) return Message::Run(std::move(message));
  message.reset();
  Change([&] {
    computing_ = false;
    finished_ = made.ok();
    if (!made.ok()) EndWith(made);
  });
}

void ExportStream::Complete(absl::StatusOr<ReplyMessage> message, Clock::Duration duration) {
  // The stream may end on another thread as soon as nothing is computed.
  const auto self = shared_from_this();
  Change([&] {
    computing_ = false;
    FitSize(message.status(), duration);
    if (message.ok()) {
      run_.FinishPart();
      finished_ = run_.done();
      ready_ = *std::move(message);
    }
  });
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

}  // namespace

std::unique_ptr<Method> ExportMethod(RpcEnvironment& environment, const MethodRow& row,
                                     const ExportServices& services) {
  return std::make_unique<StreamMethod<ExportStream, ExportServices>>(
      environment, row, Method::Type::kServerStream, services);
}

}  // namespace simile::service
