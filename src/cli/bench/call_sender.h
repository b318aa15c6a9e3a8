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

// Why a call failed, as the server says it to programs.
struct CallError {
  std::string reason;  // of google.rpc.ErrorInfo, else the name of the gRPC code: "UNAVAILABLE"
  std::string message;
};
// REQUIRES: !status.ok()
CallError ToCallError(const grpc::Status& status);
// Of an answer in a stream.
CallError ToCallError(const google::rpc::Status& status);

// How a call ended. Answers are kept as bytes: parsing each would cost the client more than the
// call.
struct CallOutcome {
  std::optional<CallError> error;
  // A response of Search or Recommend; of a stream, a SearchStreamResponse. Empty after an error.
  grpc::ByteBuffer answer;
};

// What a stream's answer begins with; its results are skipped.
struct StreamAnswerHead {
  std::uint64_t tag = 0;
  std::optional<CallError> error;
};
// Nothing when the bytes are no SearchStreamResponse.
std::optional<StreamAnswerHead> ReadStreamAnswerHead(const grpc::ByteBuffer& answer);

// The receipt of a SearchResponse or RecommendResponse; results are skipped, not parsed.
//   in_stream  the bytes are a SearchStreamResponse
std::optional<v1::Receipt> ReadReceipt(const grpc::ByteBuffer& answer, bool in_stream);

enum class CallMethod : std::uint8_t { kSearch, kRecommend };

// Sends requests that are serialized already and returns answers as bytes, over connections and a
// completion queue of its own: a client thread's part of the load.
class CallSender {
 public:
  using Report = std::function<void(std::uint32_t slot, CallOutcome& outcome)>;

  virtual ~CallSender() = default;

  // Starts a call. Thread-safe.
  //   slot  the caller's number for the call, until its outcome is reported
  virtual void Start(std::uint32_t slot, CallMethod method, const grpc::Slice& request) = 0;
  // Reports outcomes, on the thread that calls it, until Stop.
  virtual void Run(const Report& report) = 0;
  // REQUIRES: no call is under way, and none is started afterwards. Thread-safe.
  virtual void Stop() = 0;
};

using Channels = std::vector<std::shared_ptr<grpc::Channel>>;

// Opens so many connections, each with a channel to itself.
// Errors: kUnavailable when one is not ready within `timeout`.
absl::StatusOr<Channels> OpenChannels(const std::string& address, const ClientSecurity& security,
                                      std::size_t count, std::chrono::milliseconds timeout);

// Each request a call of its own, with this deadline.
//   slot_count  calls under way at most
std::unique_ptr<CallSender> MakeUnaryCalls(const Channels& channels, std::uint32_t slot_count,
                                           std::chrono::milliseconds timeout);

// Requests as messages of SearchStream, answered as they complete: one stream for each connection,
// more when the slots are more than a stream takes. A stream that ends fails its requests and is
// opened again by the next one.
//   end_by  no stream lasts longer
std::unique_ptr<CallSender> MakeStreamCalls(const Channels& channels, std::uint32_t slot_count,
                                            std::chrono::milliseconds timeout,
                                            std::chrono::system_clock::time_point end_by);

}  // namespace simile::cli::bench
