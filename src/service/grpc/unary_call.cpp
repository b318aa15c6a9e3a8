#include "service/grpc/unary_call.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <new>

#include <absl/container/inlined_vector.h>

#include "net/event_loop.h"
#include "service/calls/call.h"
#include "service/grpc/messages.h"

namespace simile::service {
namespace {

// Memory of ended exchanges, kept by one thread.
struct FreeBlocks {
  static constexpr std::size_t kMax = 64;

  ~FreeBlocks() {
    for (void* const block : blocks) ::operator delete(block);
  }

  absl::InlinedVector<void*, kMax> blocks;  // never more: adding one takes no memory
};

thread_local FreeBlocks free_blocks;

}  // namespace

void* UnaryExchange::operator new(std::size_t bytes) {
  auto& blocks = free_blocks.blocks;
  if (blocks.empty()) return ::operator new(bytes);
  void* const kept = blocks.back();
  blocks.pop_back();
  return kept;
}

void UnaryExchange::operator delete(void* memory) {
  auto& blocks = free_blocks.blocks;
  blocks.size() < FreeBlocks::kMax ? blocks.push_back(memory) : ::operator delete(memory);
}

net::RpcCall& UnaryMethod::NewCall(net::Http2Stream& stream, net::CallHead head) {
  return *new UnaryExchange(*this, stream, std::move(head));  // destroys itself
}

absl::Status UnaryExchange::BeginWith(net::ReceivedMessage request) {
  const std::size_t bytes = request.size();
  absl::Status admitted = call_->Admit(bytes);
  if (!admitted.ok()) return admitted;
  request_ = std::move(request);
  return Handle([this] { call_->Run(); }, call_->caller(), bytes);
}

void UnaryExchange::End(ReplyMessage response, net::CallEnd end) {
  const Clock::TimePoint take_by = TakeBy(call_->arrived_at());
  call_.reset();
  request_ = {};
  Finish(std::move(response), std::move(end), take_by);
}

UnaryExchange::Arrived::Arrived(UnaryExchange& exchange)
    : ServerCall<Call>(exchange.environment(), CallRecord(exchange.method_, exchange.head()),
                       exchange.cancelled()),
      exchange_(exchange) {
  SetDeadline(exchange.head().deadline);
}

void UnaryExchange::Arrived::Run() {
  const std::size_t request_bytes = exchange_.request_.size();
  const bool is_large = request_bytes > kParsedAtOnceBytesMax;
  const absl::Status parsed = Guarded([&] {
    const absl::Status wanted = CheckWanted();
    if (!wanted.ok()) return wanted;
    messages_ = exchange_.method_.NewMessages(arena_);
    net::ReceivedMessage& request = exchange_.request_;
    if (!is_large) return ParseMessage(request.text(), *messages_.request);
    const auto owner = std::make_shared<const net::ReceivedMessage>(std::move(request));
    return ParseRequest(owner->text(), owner, *messages_.request, vectors_);
  });
  exchange_.request_ = {};
  if (!parsed.ok()) return Finish(parsed);
  if (is_large) {
    ResolveWorkers::NeedsOnly(std::max<std::uint64_t>(request_bytes, vectors_.held_bytes()) +
                              arena_.SpaceAllocated());
  }
  exchange_.method_.Handle(*this, messages_);
}

absl::Status UnaryExchange::Arrived::CheckWanted() const {
  if (net::OnLoopThread()) return absl::OkStatus();
  const absl::Status wanted =
      MakeLongWork(*this, environment().clock, "its request was read").Ask();
  CountRefusal(environment().metrics, wanted);
  return wanted;
}

void UnaryExchange::Arrived::Finish(const absl::Status& status) {
  if (!status.ok()) return End(status);
  assert(messages_.response != nullptr);
  End(Serialize([this] { return SerializeMessage(*messages_.response, reply_limit()); }));
}

void UnaryExchange::Arrived::FinishWith(const Reply& reply) {
  End(Serialize([&] { return SerializeReply(reply, reply_limit()); }));
}

void UnaryExchange::Arrived::End(absl::StatusOr<ReplyMessage> response) {
  const absl::Status status = response.status();
  record().Ended(status);
  exchange_.End(std::move(response).value_or(nullptr), MakeCallEnd(status, record()));
}

}  // namespace simile::service
