#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <unordered_set>
#include <utility>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include "cli/bench/call_sender.h"
#include "simile/limits.h"

namespace simile::cli::bench {
namespace {

const std::string kStreamMethod = "/simile.v1.SearchService/SearchStream";

// Wraps a serialized request in a SearchStreamRequest: the fields before the request, the request,
// the fields after it.
class StreamEnvelope {
 public:
  explicit StreamEnvelope(std::chrono::milliseconds timeout) {
    v1::SearchStreamRequest rest;
    rest.mutable_timeout()->set_seconds(timeout.count() / 1'000);
    rest.mutable_timeout()->set_nanos(static_cast<int>(timeout.count() % 1'000) * 1'000'000);
    rest.set_answer_order(v1::ANSWER_ORDER_AS_COMPLETED);
    rest_ = grpc::Slice(rest.SerializeAsString());
  }

  grpc::ByteBuffer Around(std::uint64_t tag, CallMethod method, const grpc::Slice& request) const {
    using google::protobuf::internal::WireFormatLite;
    std::string head;
    {
      google::protobuf::io::StringOutputStream stream(&head);
      google::protobuf::io::CodedOutputStream out(&stream);
      out.WriteTag(WireFormatLite::MakeTag(v1::SearchStreamRequest::kTagFieldNumber,
                                           WireFormatLite::WIRETYPE_VARINT));
      out.WriteVarint64(tag);
      out.WriteTag(WireFormatLite::MakeTag(method == CallMethod::kSearch
                                               ? v1::SearchStreamRequest::kSearchFieldNumber
                                               : v1::SearchStreamRequest::kRecommendFieldNumber,
                                           WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
      out.WriteVarint32(static_cast<std::uint32_t>(request.size()));
    }
    const std::array<grpc::Slice, 3> slices = {grpc::Slice(head), request, rest_};
    return {slices.data(), slices.size()};
  }

 private:
  grpc::Slice rest_;
};

// One life of a stream, from its call to its status. Thread-safe. Destroyed after its last event,
// by the thread that serves the queue.
class StreamLife {
 public:
  enum class Step : std::uint8_t { kStarted, kWritten, kRead, kFinished };
  struct Event {
    StreamLife* life;
    Step step;
  };
  // The results of one event.
  struct News {
    std::vector<std::pair<std::uint32_t, CallOutcome>> outcomes;
    bool over = false;  // no further event will follow
  };

  StreamLife(std::size_t number, grpc::GenericStub& stub, grpc::CompletionQueue& queue,
             std::chrono::system_clock::time_point end_by)
      : number_(number) {
    context_.set_deadline(end_by);
    call_ = stub.PrepareCall(&context_, kStreamMethod, &queue);
  }

  // Begins the call, so that events follow. REQUIRES: the first Send was made; a call that fails at
  // once would refuse it.
  void Begin() {
    const std::lock_guard lock(mutex_);
    ++pending_events_;
    call_->StartCall(&started_);
  }

  std::size_t number() const { return number_; }

  // Returns false if the stream has ended; the request then belongs to the next life.
  bool Send(std::uint32_t slot, grpc::ByteBuffer message) {
    const std::lock_guard lock(mutex_);
    if (ending_) return false;
    under_way_.insert(slot);
    waiting_.push_back(std::move(message));
    WriteNext();
    return true;
  }

  void Cancel() { context_.TryCancel(); }

  News On(Step step, bool ok) {
    const std::lock_guard lock(mutex_);
    --pending_events_;
    News news;
    switch (step) {
      case Step::kStarted:
        writing_ = false;
        if (!ok) {
          End();
          break;
        }
        ReadNext();
        WriteNext();
        break;
      case Step::kWritten:
        writing_ = false;  // a failed write also ends the reading
        if (ok) WriteNext();
        break;
      case Step::kRead:
        if (ok) OnAnswer(news);
        ok ? ReadNext() : End();
        break;
      case Step::kFinished:
        OnFinished(news);
        break;
    }
    news.over = pending_events_ == 0;
    return news;
  }

 private:
  void ReadNext() {
    ++pending_events_;
    call_->Read(&answer_, &read_);
  }

  void WriteNext() {
    if (writing_ || ending_ || waiting_.empty()) return;
    writing_ = true;
    message_ = std::move(waiting_.front());
    waiting_.pop_front();
    ++pending_events_;
    call_->Write(message_, &written_);
  }

  void End() {
    ending_ = true;
    ++pending_events_;
    call_->Finish(&status_, &finished_);
  }

  void OnAnswer(News& news) {
    const std::optional<StreamAnswerHead> head = ReadStreamAnswerHead(answer_);
    if (!head || under_way_.erase(static_cast<std::uint32_t>(head->tag)) == 0) {
      // It is unknown which request this answers, so ends the stream and fails all its requests.
      context_.TryCancel();
      return;
    }
    CallOutcome outcome;
    outcome.error = head->error;
    if (!outcome.error) outcome.answer.Swap(&answer_);
    answer_.Clear();
    news.outcomes.emplace_back(static_cast<std::uint32_t>(head->tag), std::move(outcome));
  }

  void OnFinished(News& news) {
    for (const std::uint32_t slot : under_way_) {
      CallOutcome outcome;
      outcome.error = status_.ok() ? CallError{"STREAM_ENDED", "the stream ended before its answer"}
                                   : ToCallError(status_);
      news.outcomes.emplace_back(slot, std::move(outcome));
    }
    under_way_.clear();
  }

  const std::size_t number_;
  Event started_{this, Step::kStarted};
  Event written_{this, Step::kWritten};
  Event read_{this, Step::kRead};
  Event finished_{this, Step::kFinished};

  std::mutex mutex_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  int pending_events_ = 0;
  bool writing_ = true;  // true until the stream has started
  bool ending_ = false;
  std::deque<grpc::ByteBuffer> waiting_;
  grpc::ByteBuffer message_;
  grpc::ByteBuffer answer_;
  grpc::Status status_;
  std::unordered_set<std::uint32_t> under_way_;  // slots
};

class StreamCalls final : public CallSender {
 public:
  StreamCalls(const Channels& channels, std::uint32_t slot_count, std::chrono::milliseconds timeout,
              std::chrono::system_clock::time_point end_by)
      : envelope_(timeout), end_by_(end_by) {
    for (const auto& channel : channels) stubs_.emplace_back(channel);
    constexpr std::uint32_t kStreamRequestsMax = Limits{}.stream_requests_max;
    const std::size_t needed = (slot_count + kStreamRequestsMax - 1) / kStreamRequestsMax;
    streams_.resize(std::max(needed, channels.size()));
  }

  void Start(std::uint32_t slot, CallMethod method, const grpc::Slice& request) override {
    const std::size_t number = slot % streams_.size();
    grpc::ByteBuffer message = envelope_.Around(slot, method, request);
    const std::lock_guard lock(mutex_);
    if (streams_[number] == nullptr || !streams_[number]->Send(slot, message)) {
      streams_[number] = lives_
                             .emplace_back(std::make_unique<StreamLife>(
                                 number, stubs_[number % stubs_.size()], queue_, end_by_))
                             .get();
      streams_[number]->Send(slot, std::move(message));
      streams_[number]->Begin();
    }
  }

  void Run(const Report& report) override {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
      const auto& event = *static_cast<StreamLife::Event*>(tag);
      StreamLife* life = event.life;
      StreamLife::News news = life->On(event.step, ok);
      if (news.over) Bury(life);
      for (auto& [slot, outcome] : news.outcomes) report(slot, outcome);
    }
  }

  void Stop() override {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (StreamLife* life : streams_) {
      if (life != nullptr) life->Cancel();
    }
    if (lives_.empty()) queue_.Shutdown();
  }

 private:
  void Bury(StreamLife* life) {
    const std::lock_guard lock(mutex_);
    if (streams_[life->number()] == life) streams_[life->number()] = nullptr;
    std::erase_if(lives_, [life](const auto& each) { return each.get() == life; });
    if (lives_.empty() && stopping_) queue_.Shutdown();
  }

  const StreamEnvelope envelope_;
  const std::chrono::system_clock::time_point end_by_;
  std::vector<grpc::GenericStub> stubs_;
  grpc::CompletionQueue queue_;
  std::mutex mutex_;                                // guards the members below
  std::vector<StreamLife*> streams_;                // the current life of each stream, or null
  std::vector<std::unique_ptr<StreamLife>> lives_;  // includes ended lives, until their last event
  bool stopping_ = false;
};

}  // namespace

std::unique_ptr<CallSender> MakeStreamCalls(const Channels& channels, std::uint32_t slot_count,
                                            std::chrono::milliseconds timeout,
                                            std::chrono::system_clock::time_point end_by) {
  return std::make_unique<StreamCalls>(channels, slot_count, timeout, end_by);
}

}  // namespace simile::cli::bench
