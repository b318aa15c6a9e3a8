#include "service/grpc/unary_call.h"

#include <algorithm>
#include <cassert>
#include <new>

#include "service/guarded.h"

namespace simile::service {

// The exchanges of a method. Used by the I/O thread only. Keeps the memory of as many as are posted
// for the next ones.
class UnaryMethod::Calls {
 public:
  explicit Calls(const UnaryExchange::Shared& shared) : shared_(shared) { Refill(); }

  void OnArrived() {
    --posted_;
    Refill();
  }
  void Release(UnaryExchange& exchange) {
    exchange.~UnaryExchange();
    BlockPtr block(reinterpret_cast<Block*>(&exchange));
    if (free_.size() < free_.capacity()) free_.push_back(std::move(block));
  }

 private:
  struct Block {
    alignas(UnaryExchange) std::array<std::byte, sizeof(UnaryExchange)> bytes;
  };
  using BlockPtr = std::unique_ptr<Block>;

  // Asks gRPC for more calls. Without memory for that, the next arrival asks again.
  void Refill() {
    static_cast<void>(Guarded([this] {
      const std::size_t wanted = shared_.method.row().posted;
      if (free_.capacity() == 0) free_.reserve(wanted);
      while (posted_ < wanted) {
        BlockPtr block = NewBlock();
        new (block->bytes.data()) UnaryExchange(shared_, *this);
        static_cast<void>(block.release());  // Release takes it back
        ++posted_;
      }
      return absl::OkStatus();
    }));
  }
  BlockPtr NewBlock() {
    if (free_.empty()) return std::make_unique<Block>();
    BlockPtr block = std::move(free_.back());
    free_.pop_back();
    return block;
  }

  const UnaryExchange::Shared shared_;
  std::size_t posted_ = 0;
  std::vector<BlockPtr> free_;
};

UnaryMethod::UnaryMethod(RpcEnvironment& environment, const MethodRow& row)
    : Method(environment, row, Type::NORMAL_RPC) {}

UnaryMethod::~UnaryMethod() = default;

void UnaryMethod::TakeCalls(MethodService& service, int index, net::IoThread& thread) {
  calls_ = std::make_unique<Calls>(UnaryExchange::Shared{*this, service, index, thread});
}

UnaryExchange::UnaryExchange(const Shared& shared, UnaryMethod::Calls& calls)
    : shared_(shared), calls_(calls) {
  context_.AsyncNotifyWhenDone(done_event_.tag());
  grpc::ServerCompletionQueue& queue = shared.thread.queue();
  shared.service.RequestAsyncUnary(shared.index, &context_, &request_, &writer_, &queue, &queue,
                                   arrived_event_.tag());
}

void UnaryExchange::OnArrived(bool ok) {
  if (!ok) return calls_.Release(*this);  // the server has shut down
  calls_.OnArrived();
  RpcEnvironment& environment = shared_.method.environment();
  if (shared_.method.row().is_recorded) environment.metrics.AddRequestsInFlight(1);
  shared_.thread.Add(*this);
  const absl::Status made = Guarded([this] {
    call_.emplace(*this);
    return absl::OkStatus();
  });
  if (!made.ok()) {
    return Send({}, OutOfMemoryEnd());
  }
  const absl::Status begun = Guarded([this] { return Begin(); });
  if (!begun.ok()) call_->Finish(begun);
}

absl::Status UnaryExchange::Begin() {
  RpcEnvironment& environment = shared_.method.environment();
  if (shared_.thread.stopping()) {
    environment.metrics.CountRejected(observe::Rejection::kDraining);
    return StoppingError();
  }
  const std::size_t bytes = request_.Length();
  const bool is_large = bytes > kParsedAtOnceBytesMax;
  if (shared_.method.row().runs == Runs::kOnIoThread && !is_large) {
    call_->Run();
    return absl::OkStatus();
  }
  const absl::Status posted =
      PostToWorkers(environment.workers, [this] { call_->RunOnWorker(); },
                    {call_->caller(), bytes, is_large ? ParsedBytesMax(bytes) : 0});
  CountRefusal(environment.metrics, posted);
  return posted;
}

void UnaryExchange::Send(const grpc::ByteBuffer& response, const grpc::Status& status) {
  const RpcEnvironment& environment = shared_.method.environment();
  SetTakeDeadline(TakeDeadline(environment, call_ ? call_->arrived_at() : environment.clock.Now()));
  call_.reset();
  request_.Clear();
  writer_.Finish(response, status, finished_event_.tag());
}

void UnaryExchange::OnFinished(bool /*ok*/) {
  ClearTakeDeadline();
  End();
}

void UnaryExchange::OnDone(bool /*ok*/) {
  if (context_.IsCancelled()) cancelled_.request_stop();
  End();
}

void UnaryExchange::End() {
  if (++ends_ < 2) return;
  shared_.thread.Remove(*this);
  if (shared_.method.row().is_recorded) {
    shared_.method.environment().metrics.AddRequestsInFlight(-1);
  }
  calls_.Release(*this);
}

UnaryExchange::Arrived::Arrived(UnaryExchange& exchange)
    : ServerCall<Call>(exchange.shared_.method.environment(),
                       CallRecord(exchange.shared_.method.environment(), exchange.context_,
                                  exchange.shared_.method.identity()),
                       exchange.cancelled_.get_token()),
      exchange_(exchange) {
  SetDeadline(DeadlineOf(environment(), exchange.context_, arrived_at()));
}

void UnaryExchange::Arrived::RunOnWorker() {
  // It may have waited long.
  const absl::Status wanted =
      Guarded([this] { return WorkOf(*this, environment().clock, "its request was read").Ask(); });
  if (wanted.ok()) return Run();
  CountRefusal(environment().metrics, wanted);
  Finish(wanted);
}

void UnaryExchange::Arrived::Run() {
  const UnaryMethod& method = exchange_.shared_.method;
  const std::size_t request_bytes = exchange_.request_.Length();
  google::protobuf::Message* request = nullptr;
  const absl::Status parsed = Guarded([&] {
    request = &method.NewRequest(arena_);
    response_ = method.NewResponse(arena_);
    return ParseMessage(exchange_.request_, *request);
  });
  if (!parsed.ok()) return Finish(parsed);
  if (request_bytes > kParsedAtOnceBytesMax) {
    ResolveWorkers::NeedsOnly(request_bytes + arena_.SpaceAllocated());
  }
  method.Handle(*this, *request, response_);
}

void UnaryExchange::Arrived::Finish(const absl::Status& status) {
  if (!status.ok()) return End(status, {});
  assert(response_ != nullptr);
  EndWith([this] { return SerializeMessage(*response_, reply_limit()); });
}

void UnaryExchange::Arrived::FinishWith(const Reply& reply) {
  EndWith([&] { return SerializeReply(reply, reply_limit()); });
}

void UnaryExchange::Arrived::EndWith(
    absl::FunctionRef<absl::StatusOr<grpc::ByteBuffer>()> serialize) {
  grpc::ByteBuffer response;
  const absl::Status end = Serialize(serialize, response);
  End(end, response);
}

void UnaryExchange::Arrived::End(const absl::Status& status, const grpc::ByteBuffer& response) {
  record().Ended(status);
  exchange_.Send(response, GrpcStatus(status, record(), exchange_.context_));
}

}  // namespace simile::service
