#include "service/grpc/unary_call.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <new>

#include "service/grpc/search_request_reader.h"
#include "service/guarded.h"

namespace simile::service {

struct UnaryMethod::Block {
  alignas(UnaryExchange) std::array<std::byte, sizeof(UnaryExchange)> bytes;
};

UnaryMethod::UnaryMethod(RpcEnvironment& environment, const MethodRow& row)
    : Method(environment, row, Type::NORMAL_RPC) {}

UnaryMethod::~UnaryMethod() = default;

void UnaryMethod::AskForCall() {
  if (free_.capacity() == 0) free_.reserve(row().posted);
  std::unique_ptr<Block> block;
  if (free_.empty()) {
    block = std::make_unique<Block>();
  } else {
    block = std::move(free_.back());
    free_.pop_back();
  }
  new (block->bytes.data()) UnaryExchange(*this);
  static_cast<void>(block.release());  // Release takes it back
}

void UnaryMethod::Release(UnaryExchange& exchange) {
  exchange.~UnaryExchange();
  std::unique_ptr<Block> block(reinterpret_cast<Block*>(&exchange));
  if (free_.size() < free_.capacity()) free_.push_back(std::move(block));
}

UnaryExchange::UnaryExchange(UnaryMethod& method) : Exchange(method), method_(method) {
  const Method::Source& source = method.source();
  grpc::ServerCompletionQueue& queue = source.thread.queue();
  source.service.RequestAsyncUnary(source.index, &context(), &request_, &writer_, &queue, &queue,
                                   arrived_tag());
}

absl::Status UnaryExchange::Begin() {
  absl::Status admitted = call_->Admit(request_.Length());
  if (!admitted.ok()) return admitted;
  return Handle([this] { call_->Run(); }, call_->caller(), request_.Length());
}

void UnaryExchange::Send(const grpc::ByteBuffer& response, const grpc::Status& status) {
  ExpectTaken(call_ ? call_->arrived_at() : environment().clock.Now());
  call_.reset();
  request_.Clear();
  writer_.Finish(response, status, end_tag());
}

UnaryExchange::Arrived::Arrived(UnaryExchange& exchange)
    : ServerCall<Call>(exchange.environment(), CallRecord(exchange.method_, exchange.context()),
                       exchange.cancelled()),
      exchange_(exchange) {
  SetDeadline(DeadlineOf(environment(), exchange.context(), arrived_at()));
}

void UnaryExchange::Arrived::Run() {
  const std::size_t request_bytes = exchange_.request_.Length();
  const absl::Status parsed = Guarded([&] {
    const absl::Status wanted = CheckWanted();
    if (!wanted.ok()) return wanted;
    messages_ = exchange_.method_.NewMessages(arena_);
    return ParseRequest(exchange_.request_, *messages_.request, vectors_);
  });
  if (!parsed.ok()) return Finish(parsed);
  if (request_bytes > kParsedAtOnceBytesMax) {
    ResolveWorkers::NeedsOnly(std::max<std::uint64_t>(request_bytes, vectors_.held_bytes()) +
                              arena_.SpaceAllocated());
  }
  exchange_.method_.Handle(*this, messages_);
}

absl::Status UnaryExchange::Arrived::CheckWanted() const {
  if (net::OnIoThread()) return absl::OkStatus();
  const absl::Status wanted = WorkOf(*this, environment().clock, "its request was read").Ask();
  CountRefusal(environment().metrics, wanted);
  return wanted;
}

void UnaryExchange::Arrived::Finish(const absl::Status& status) {
  if (!status.ok()) return End(status, {});
  assert(messages_.response != nullptr);
  EndWith([this] { return SerializeMessage(*messages_.response, reply_limit()); });
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
  exchange_.Send(response, GrpcStatus(status, record(), exchange_.context()));
}

}  // namespace simile::service
