#include "cli/bench/answer_check.h"

#include <fmt/format.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/proto_buffer_reader.h>

namespace simile::cli::bench {
namespace {

constexpr std::size_t kFindingsMax = 10;

bool ParseAnswer(grpc::ByteBuffer answer, google::protobuf::MessageLite& message) {
  grpc::ProtoBufferReader reader(&answer);
  return message.ParseFromZeroCopyStream(&reader);
}

CheckedAnswer Unparsed() { return {CheckedAnswer::Result::kWrong, "the answer cannot be parsed"}; }

// Parses an answer, of a stream or not, and its request, and checks them.
template <class Request, class Response, class FromStream>
CheckedAnswer CheckAs(const grpc::Slice& request_bytes, const grpc::ByteBuffer& answer,
                      Transport transport, const FromStream& from_stream,
                      const VectorCheck& check) {
  Request request;
  request.ParseFromArray(request_bytes.begin(), static_cast<int>(request_bytes.size()));
  Response response;
  if (transport == Transport::kStream) {
    v1::SearchStreamResponse streamed;
    if (!ParseAnswer(answer, streamed)) return Unparsed();
    response = from_stream(streamed);
  } else if (!ParseAnswer(answer, response)) {
    return Unparsed();
  }
  return check.Check(request, response);
}

}  // namespace

CheckSummary CheckKept(const std::vector<KeptAnswer>& kept, const RequestPool& pool,
                       Transport transport, const VectorCheck& check) {
  CheckSummary summary;
  for (const KeptAnswer& each : kept) {
    const PreparedKind& kind = pool.kinds()[each.choice.kind];
    const grpc::Slice& request = pool.Request(each.choice);
    const CheckedAnswer checked =
        kind.method == CallMethod::kSearch
            ? CheckAs<v1::SearchRequest, v1::SearchResponse>(
                  request, each.answer, transport,
                  [](const v1::SearchStreamResponse& streamed) { return streamed.search(); }, check)
            : CheckAs<v1::RecommendRequest, v1::RecommendResponse>(
                  request, each.answer, transport,
                  [](const v1::SearchStreamResponse& streamed) { return streamed.recommend(); },
                  check);
    if (checked.result == CheckedAnswer::Result::kUnchecked) {
      ++summary.unchecked[checked.why];
      continue;
    }
    ++summary.compared;
    if (checked.result == CheckedAnswer::Result::kRight) continue;
    ++summary.wrong;
    if (summary.findings.size() < kFindingsMax) {
      summary.findings.push_back(fmt::format("{}: {}", kind.name, checked.why));
    }
  }
  return summary;
}

}  // namespace simile::cli::bench
