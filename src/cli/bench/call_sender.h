#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>
#include <grpcpp/channel.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>
#include <grpcpp/support/status.h>

#include "cli/client_security.h"
#include "simile/v1/search.pb.h"

namespace google::rpc {  // NOLINT(readability-identifier-naming): another project's name
class Status;
}

namespace simile::cli::bench {

// Why a call failed: the server's reason for programs, and its message.
struct CallError {
  std::string reason;  // of google.rpc.ErrorInfo, else the name of the gRPC code: "UNAVAILABLE"
  std::string message;
};
// REQUIRES: !status.ok()
CallError ToCallError(const grpc::Status& status);
// The same for an error inside an answer of a stream.
CallError ToCallError(const google::rpc::Status& status);

// How a call ended. An answer stays serialized, because parsing it costs the client more than the
// call.
struct CallOutcome {
  std::optional<CallError> error;
  // A serialized response of Search or Recommend, or a SearchStreamResponse from a stream. Empty
  // after an error.
  grpc::ByteBuffer answer;
};

// The first fields of a stream's answer. Its results are not parsed.
struct StreamAnswerHead {
  std::uint64_t tag = 0;
  std::optional<CallError> error;
};
// Nothing if the bytes are not a SearchStreamResponse.
std::optional<StreamAnswerHead> ReadStreamAnswerHead(const grpc::ByteBuffer& answer);

// The receipt of a SearchResponse or RecommendResponse. Skips the results without parsing them.
//   in_stream  the bytes are a SearchStreamResponse
std::optional<v1::Receipt> ReadReceipt(const grpc::ByteBuffer& answer, bool in_stream);

enum class CallMethod : std::uint8_t { kSearch, kRecommend };

// Sends serialized requests and returns serialized answers. Has its own connections and completion
// queue. Each client thread uses one CallSender.
class CallSender {
 public:
  using Report = std::function<void(std::uint32_t slot, CallOutcome& outcome)>;

  virtual ~CallSender() = default;

  // Starts a call. Thread-safe.
  //   slot  the caller's number for the call; free again once the outcome is reported
  virtual void Start(std::uint32_t slot, CallMethod method, const grpc::Slice& request) = 0;
  // Calls `report` with each outcome on the calling thread. Returns after Stop.
  virtual void Run(const Report& report) = 0;
  // REQUIRES: no call is under way, and none is started afterwards. Thread-safe.
  virtual void Stop() = 0;
};

using Channels = std::vector<std::shared_ptr<grpc::Channel>>;

// Opens `count` connections, each with its own channel. Errors: kUnavailable when one is not ready
// within `timeout`.
absl::StatusOr<Channels> OpenChannels(const std::string& address, const ClientSecurity& security,
                                      std::size_t count, std::chrono::milliseconds timeout);

// Sends each request as its own call with this deadline.
//   slot_count  the most calls in flight
std::unique_ptr<CallSender> MakeUnaryCalls(const Channels& channels, std::uint32_t slot_count,
                                           std::chrono::milliseconds timeout);

// Sends requests as messages of SearchStream, whose answers come in any order. Opens one stream per
// connection, or more if the slots exceed what these streams take. When a stream ends, its requests
// fail, and the next request opens it again.
//   end_by  the deadline of every stream
std::unique_ptr<CallSender> MakeStreamCalls(const Channels& channels, std::uint32_t slot_count,
                                            std::chrono::milliseconds timeout,
                                            std::chrono::system_clock::time_point end_by);

}  // namespace simile::cli::bench
