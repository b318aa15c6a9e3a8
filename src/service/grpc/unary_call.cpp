#include "service/grpc/unary_call.h"

#include <algorithm>
#include <cassert>
#include <new>

#include "base/error_detail.h"
#include "service/guarded.h"

namespace simile::service {
namespace {

// A request of more bytes is parsed by a worker: on the I/O thread it would hold up other calls.
constexpr std::size_t kParsedAtOnceBytesMax = 64U << 10;

}  // namespace

// The exchanges of a method on one I/O thread, which alone uses this. Keeps the memory of as many
// as are posted for the next ones.
class UnaryMethod::Calls final : public UnaryExchange::Owner {
 public:
  explicit Calls(const UnaryExchange::Shared& shared) : shared_(shared) { Refill(); }

  void OnArrived() override {
    --posted_;
    Refill();
  }
  void Release(UnaryExchange& exchange) override {
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
  calls_.push_back(std::make_unique<Calls>(UnaryExchange::Shared{*this, service, index, thread}));
}

UnaryExchange::UnaryExchange(const Shared& shared, Owner& owner) : shared_(shared), owner_(owner) {
  context_.AsyncNotifyWhenDone(static_cast<net::IoEvent*>(&done_event_));
  grpc::ServerCompletionQueue& queue = shared.thread.queue();
  shared.service.RequestAsyncUnary(shared.index, &context_, &request_, &writer_, &queue, &queue,
                                   static_cast<net::IoEvent*>(&arrived_event_));
}

void UnaryExchange::OnArrived(bool ok) {
  if (!ok) return owner_.Release(*this);  // the server has shut down
  owner_.OnArrived();
  RpcEnvironment& environment = shared_.method.environment();
  if (shared_.method.row().is_recorded) environment.metrics.AddRequestsInFlight(1);
  shared_.thread.Add(*this);
  const absl::Status made = Guarded([this] {
    call_.emplace(*this);
    return absl::OkStatus();
  });
  if (!made.ok()) {
    return Send({}, {grpc::StatusCode::RESOURCE_EXHAUSTED, "the server is out of memory"});
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
  if (shared_.method.row().runs == Runs::kOnIoThread &&
      request_.Length() <= kParsedAtOnceBytesMax) {
    call_->Run();
    return absl::OkStatus();
  }
  // Parsed, a request takes about as many bytes again.
  const std::uint64_t bytes =
      request_.Length() <= kParsedAtOnceBytesMax ? 0 : 2 * request_.Length();
  return PostToWorkers(
      environment, [this] { call_->Run(); }, bytes);
}

void UnaryExchange::Send(const grpc::ByteBuffer& response, const grpc::Status& status) {
  const RpcEnvironment& environment = shared_.method.environment();
  if (call_) MustBeTakenBy(TakenBy(environment, call_->arrived_at()));
  call_.reset();
  writer_.Finish(response, status, static_cast<net::IoEvent*>(&finished_event_));
}

void UnaryExchange::OnFinished(bool /*ok*/) {
  IsTaken();
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
  owner_.Release(*this);
}

UnaryExchange::Arrived::Arrived(UnaryExchange& exchange)
    : ServerCall<Call>(exchange.shared_.method.environment(),
                       CallRecord(exchange.shared_.method.environment(), exchange.context_,
                                  exchange.shared_.method.identity()),
                       exchange.cancelled_.get_token()),
      exchange_(exchange) {
  SetDeadline(DeadlineOf(environment(), exchange.context_, arrived_at()));
}

void UnaryExchange::Arrived::Run() {
  const UnaryMethod& method = exchange_.shared_.method;
  google::protobuf::Message* request = nullptr;
  const absl::Status parsed = Guarded([&] {
    request = &method.NewRequest(arena_);
    response_ = method.NewResponse(arena_);
    return ParseMessage(exchange_.request_, *request);
  });
  if (!parsed.ok()) return Finish(parsed);
  method.Handle(*this, *request, response_);
}

void UnaryExchange::Arrived::Finish(const absl::Status& status) {
  if (!status.ok()) return End(status, {});
  assert(response_ != nullptr);
  FinishWithBytes([this] { return SerializeMessage(*response_, reply_limit()); });
}

void UnaryExchange::Arrived::FinishWith(const Reply& reply) {
  FinishWithBytes([&] { return SerializeReply(reply, reply_limit()); });
}

template <class Serialize>
void UnaryExchange::Arrived::FinishWithBytes(Serialize serialize) {
  grpc::ByteBuffer response;
  const absl::Status end = Guarded([&]() -> absl::Status {
    if (cancelled().stop_requested()) return CallerGoneError();
    auto bytes = serialize();
    if (bytes.ok()) response.Swap(&*bytes);
    CountRefusal(environment(), bytes.status());
    return bytes.status();
  });
  End(end, response);
}

void UnaryExchange::Arrived::End(const absl::Status& status, const grpc::ByteBuffer& response) {
  record().Ended(status);
  exchange_.Send(response, GrpcStatus(status, record(), exchange_.context_));
}

}  // namespace simile::service
