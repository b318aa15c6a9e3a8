#include "cli/bench/call_sender.h"

#include <absl/status/status.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include "cli/errors.h"
#include "google/rpc/status.pb.h"

namespace simile::cli::bench {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// The tag of a length-delimited field: its number and wire type in one integer.
std::uint32_t BytesField(int number) {
  return WireFormatLite::MakeTag(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

std::string CodeName(int code) {
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
}

// Calls read(tag) for each field until one call returns false. `read` must consume or skip the
// field. Returns false for malformed bytes.
template <class Read>
bool WalkFields(CodedInputStream& in, const Read& read) {
  while (const std::uint32_t tag = in.ReadTag()) {
    if (!read(tag)) return false;
  }
  return in.ConsumedEntireMessage();
}

bool ReadMessage(CodedInputStream& in, google::protobuf::MessageLite& message) {
  return WireFormatLite::ReadMessage(&in, &message);
}

bool ReadReceiptOfResponse(CodedInputStream& in, std::optional<v1::Receipt>& receipt) {
  return WalkFields(in, [&](std::uint32_t tag) {
    if (tag != BytesField(v1::SearchResponse::kReceiptFieldNumber)) {
      return WireFormatLite::SkipField(&in, tag);
    }
    return ReadMessage(in, receipt.emplace());
  });
}

}  // namespace

CallError ToCallError(const google::rpc::Status& status) {
  const std::string reason = ParseDetails(status).reason;
  return {reason.empty() ? CodeName(status.code()) : reason, status.message()};
}

CallError ToCallError(const grpc::Status& status) {
  google::rpc::Status details;
  if (!status.error_details().empty() && details.ParseFromString(status.error_details())) {
    details.set_code(status.error_code());
    details.set_message(status.error_message());
    return ToCallError(details);
  }
  return {CodeName(status.error_code()), status.error_message()};
}

std::optional<StreamAnswerHead> ReadStreamAnswerHead(const grpc::ByteBuffer& answer) {
  grpc::ByteBuffer bytes(answer);  // shares the slices; the reader needs a mutable buffer
  grpc::ProtoBufferReader reader(&bytes);
  CodedInputStream in(&reader);
  StreamAnswerHead head;
  const bool whole = WalkFields(in, [&](std::uint32_t tag) {
    if (tag == WireFormatLite::MakeTag(v1::SearchStreamResponse::kTagFieldNumber,
                                       WireFormatLite::WIRETYPE_VARINT)) {
      return in.ReadVarint64(&head.tag);
    }
    if (tag != BytesField(v1::SearchStreamResponse::kErrorFieldNumber)) {
      return WireFormatLite::SkipField(&in, tag);
    }
    google::rpc::Status status;
    if (!ReadMessage(in, status)) return false;
    head.error = ToCallError(status);
    return true;
  });
  if (!whole) return std::nullopt;
  return head;
}

std::optional<v1::Receipt> ReadReceipt(const grpc::ByteBuffer& answer, bool in_stream) {
  // Both responses have the same field number for the receipt.
  static_assert(+v1::SearchResponse::kReceiptFieldNumber ==
                +v1::RecommendResponse::kReceiptFieldNumber);
  grpc::ByteBuffer bytes(answer);
  grpc::ProtoBufferReader reader(&bytes);
  CodedInputStream in(&reader);
  std::optional<v1::Receipt> receipt;
  if (!in_stream) {
    return ReadReceiptOfResponse(in, receipt) ? receipt : std::nullopt;
  }
  const bool whole = WalkFields(in, [&](std::uint32_t tag) {
    if (tag != BytesField(v1::SearchStreamResponse::kSearchFieldNumber) &&
        tag != BytesField(v1::SearchStreamResponse::kRecommendFieldNumber)) {
      return WireFormatLite::SkipField(&in, tag);
    }
    const CodedInputStream::Limit limit = in.ReadLengthAndPushLimit();
    return ReadReceiptOfResponse(in, receipt) && in.CheckEntireMessageConsumedAndPopLimit(limit);
  });
  return whole ? receipt : std::nullopt;
}

}  // namespace simile::cli::bench
