#include <array>
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/channel_arguments.h>

#include "cli/bench/call_sender.h"
#include "cli/client_security.h"
#include "simile/limits.h"

namespace simile::cli::bench {
namespace {

// Allowance for the bytes around the largest reply.
constexpr int kFrameBytes = 1 << 16;

// Indexed by CallMethod.
const std::array<std::string, 2> kUnaryMethods = {"/simile.v1.SearchService/Search",
                                                  "/simile.v1.SearchService/Recommend"};

class UnaryCalls final : public CallSender {
 public:
  UnaryCalls(const Channels& channels, std::uint32_t slot_count, std::chrono::milliseconds timeout)
      : timeout_(gpr_time_from_millis(timeout.count(), GPR_TIMESPAN)), calls_(slot_count) {
    for (const auto& channel : channels) stubs_.emplace_back(channel);
  }

  void Start(std::uint32_t slot, CallMethod method, const grpc::Slice& request) override {
    Call& call = calls_[slot];
    call.context.emplace();
    call.context->set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), timeout_));
    grpc::ByteBuffer bytes(&request, 1);  // shares the request's memory
    call.reader = stubs_[slot % stubs_.size()].PrepareUnaryCall(
        &*call.context, kUnaryMethods[static_cast<std::size_t>(method)], bytes, &queue_);
    call.reader->StartCall();
    call.reader->Finish(&call.answer, &call.status, &call);
  }

  void Run(const Report& report) override {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
      Call& call = *static_cast<Call*>(tag);
      CallOutcome outcome;
      if (call.status.ok()) {
        outcome.answer.Swap(&call.answer);
      } else {
        outcome.error = ToCallError(call.status);
      }
      call.answer.Clear();
      call.reader.reset();
      call.context.reset();
      report(static_cast<std::uint32_t>(&call - calls_.data()), outcome);
    }
  }

  void Stop() override { queue_.Shutdown(); }

 private:
  struct Call {
    std::optional<grpc::ClientContext> context;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
    grpc::ByteBuffer answer;
    grpc::Status status;
  };

  const gpr_timespec timeout_;
  std::vector<grpc::GenericStub> stubs_;
  grpc::CompletionQueue queue_;
  std::vector<Call> calls_;  // by slot
};

}  // namespace

absl::StatusOr<Channels> OpenChannels(const std::string& address, const ClientSecurity& security,
                                      std::size_t count, std::chrono::milliseconds timeout) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(Limits{}.reply_bytes_max) + kFrameBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Retries would hide failures. Retries, idle timers and channelz also cost each call some
  // microseconds.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);
  arguments.SetInt(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, std::numeric_limits<int>::max());
  // Without this, channels to one address share a connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  Channels channels;
  for (std::size_t i = 0; i < count; ++i) {
    channels.push_back(OpenChannel(address, security, arguments));
    channels.back()->GetState(true);
  }
  const auto ready_by = std::chrono::system_clock::now() + timeout;
  for (std::size_t i = 0; i < count; ++i) {
    if (channels[i]->WaitForConnected(ready_by)) continue;
    return absl::UnavailableError(fmt::format(
        "connection {} of {} to {} was not ready within {:.1f} s; the server bounds connections "
        "from one peer (limits.connections_per_peer_max)",
        i + 1, count, address, std::chrono::duration<double>(timeout).count()));
  }
  return channels;
}

std::unique_ptr<CallSender> MakeUnaryCalls(const Channels& channels, std::uint32_t slot_count,
                                           std::chrono::milliseconds timeout) {
  return std::make_unique<UnaryCalls>(channels, slot_count, timeout);
}

}  // namespace simile::cli::bench
