#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

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
CallError ErrorOf(const grpc::Status& status);
// Of an answer in a stream.
CallError ErrorOf(const google::rpc::Status& status);

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

}  // namespace simile::cli::bench
