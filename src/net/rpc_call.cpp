#include "net/rpc_call.h"

#include <algorithm>
#include <cassert>

#include "net/http2_stream.h"

namespace simile::net {

std::string_view FindValue(const Metadata& metadata, std::string_view name) {
  const auto found = std::ranges::find(metadata, name, &Metadata::value_type::first);
  return found == metadata.end() ? std::string_view() : found->second;
}

void OpenCalls::Remove() {
  if (count_.fetch_sub(1) > 1 || !is_awaited_) return;
  const std::lock_guard lock(mutex_);
  none_.notify_all();
}

bool OpenCalls::AwaitNone(Clock::Duration timeout) {
  std::unique_lock lock(mutex_);
  is_awaited_ = true;
  return none_.wait_for(lock, timeout, [this] { return count_ == 0; });
}

RpcCall::RpcCall(Http2Stream& stream, CallHead head)
    : head_(std::move(head)),
      loop_(stream.loop()),
      open_calls_(stream.open_calls()),
      server_stops_(stream.server_stops()),
      stream_(&stream) {
  open_calls_->Add();
}

RpcCall::~RpcCall() { open_calls_->Remove(); }

bool RpcCall::is_stopping() const { return server_stops_.load(std::memory_order_relaxed); }

// The task is posted while the mutex is held: the loop may release the call as soon as it has seen
// the change.
template <class Change>
void RpcCall::Ask(const Change& change) {
  const std::lock_guard lock(mutex_);
  change(outbox_);
  loop_.Post(*this);
}

void RpcCall::WantMessage() {
  Ask([](Outbox& outbox) { outbox.wants_message = true; });
}

void RpcCall::Send(std::shared_ptr<const OutgoingMessage> message, Clock::TimePoint take_by) {
  Ask([&](Outbox& outbox) {
    outbox.message = std::move(message);
    outbox.take_by = take_by;
  });
}

void RpcCall::Finish(std::shared_ptr<const OutgoingMessage> last, CallEnd end,
                     Clock::TimePoint take_by) {
  Ask([&](Outbox& outbox) {
    assert(!outbox.is_finished && outbox.message == nullptr);
    outbox.message = std::move(last);
    outbox.end = std::move(end);
    outbox.take_by = take_by;
    outbox.is_finished = true;
  });
}

void RpcCall::Cut() {
  Ask([](Outbox& outbox) { outbox.is_cut = true; });
}

void RpcCall::SetInitialMetadata(Metadata metadata) {
  if (stream_ != nullptr) stream_->SendInitial(std::move(metadata));
}

void RpcCall::Run() {
  Outbox outbox;
  {
    const std::lock_guard lock(mutex_);
    std::swap(outbox, outbox_);
  }
  is_finished_ = is_finished_ || outbox.is_finished;
  if (stream_ == nullptr) {
    if (outbox.message != nullptr && !is_finished_) Sent(false);
    if (outbox.wants_message && !is_finished_) Received(std::nullopt);
    return ReleaseIfDone();
  }
  if (outbox.is_finished) {
    stream_->Finish(std::move(outbox.message), std::move(outbox.end), outbox.take_by);
  } else if (outbox.message != nullptr) {
    stream_->Send(std::move(outbox.message), outbox.take_by);
  }
  if (outbox.wants_message && !is_finished_) stream_->WantMessage();
  if (outbox.is_cut && stream_ != nullptr && !is_finished_) stream_->Reset();
  ReleaseIfDone();
}

void RpcCall::Detach() {
  const bool was_sending = stream_->is_sending();
  const bool wants_message = stream_->wants_message();
  stream_ = nullptr;
  if (!is_finished_) {
    if (was_sending) Sent(false);
    if (wants_message) Received(std::nullopt);
    Gone();
  }
  ReleaseIfDone();
}

void RpcCall::ReleaseIfDone() {
  if (is_finished_ && stream_ == nullptr && !is_posted()) Release();
}

}  // namespace simile::net
