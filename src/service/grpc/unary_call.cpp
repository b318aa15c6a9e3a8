#include "service/grpc/unary_call.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <new>

#include "net/event_loop.h"
#include "service/call.h"
#include "service/grpc/messages.h"

namespace simile::service {
namespace {

// Memory of exchanges that have ended, of one thread.
class FreeBlocks {
 public:
  FreeBlocks() = default;
  FreeBlocks(const FreeBlocks&) = delete;
  FreeBlocks& operator=(const FreeBlocks&) = delete;
  ~FreeBlocks() {
    while (count_ > 0) ::operator delete(Pop());
  }

  void* Pop() { return count_ == 0 ? nullptr : blocks_[--count_]; }
  bool Keep(void* block) {
    if (count_ == blocks_.size()) return false;
    blocks_[count_++] = block;
    return true;
  }

 private:
  std::array<void*, 64> blocks_{};
  std::size_t count_ = 0;
};

thread_local FreeBlocks free_blocks;

}  // namespace

void* UnaryExchange::operator new(std::size_t bytes) {
  void* const kept = free_blocks.Pop();
  return kept != nullptr ? kept : ::operator new(bytes);
}

void UnaryExchange::operator delete(void* memory) {
  if (!free_blocks.Keep(memory)) ::operator delete(memory);
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
  if (!status.ok()) return End(status, nullptr);
  assert(messages_.response != nullptr);
  EndWith([this] { return SerializeMessage(*messages_.response, reply_limit()); });
}

void UnaryExchange::Arrived::FinishWith(const Reply& reply) {
  EndWith([&] { return SerializeReply(reply, reply_limit()); });
}

void UnaryExchange::Arrived::EndWith(absl::FunctionRef<absl::StatusOr<ReplyMessage>()> serialize) {
  ReplyMessage response;
  const absl::Status end = Serialize(serialize, response);
  End(end, std::move(response));
}

void UnaryExchange::Arrived::End(const absl::Status& status, ReplyMessage response) {
  record().Ended(status);
  exchange_.End(std::move(response), EndOf(status, record()));
}

}  // namespace simile::service
