// Any bytes as a part of a large request: the server's reader makes of the request what the
// protobuf library makes of it, or refuses it with the same words.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <google/protobuf/stubs/logging.h>

#include "service/grpc/messages.h"
#include "service/read_request.h"
#include "simile/v1/search.pb.h"

namespace {

// Enough plain queries that the reader splits the request.
const std::string& PlainQueries() {
  static const std::string bytes = [] {
    simile::v1::SearchRequest request;
    while (request.ByteSizeLong() <= simile::service::kParsedAtOnceBytesMax) {
      simile::v1::PackedVector& vector = *request.add_queries()->mutable_packed_vector();
      vector.set_data(std::string(4'096, 'x'));
      vector.set_format(simile::v1::PackedVector::FORMAT_F32_LE);
    }
    return request.SerializeAsString();
  }();
  return bytes;
}

// Field 2 of the request, `queries`, with these bytes as its content.
std::string QueryField(std::string_view content) {
  std::string field("\x12");
  std::size_t size = content.size();
  for (; size >= 0x80; size >>= 7) field.push_back(static_cast<char>(size | 0x80));
  field.push_back(static_cast<char>(size));
  return field.append(content);
}

}  // namespace

// The input: byte 0 says nothing. Bit 0 of byte 1: the other bytes are the content of a query, else
// fields of the request. Bit 1: they come after the plain queries, else before them.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const google::protobuf::LogSilencer silencer;  // of lines about texts that are not UTF-8
  if (size < 2) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  if ((data[1] & 1) != 0) bytes = QueryField(bytes);
  bytes = (data[1] & 2) != 0 ? PlainQueries() + bytes : bytes + PlainQueries();
  const simile::service::ReadOutcome read = simile::service::ReadRequest(bytes);
  const std::string expected = simile::service::ParseByLibrary(bytes);
  if (read.message_or_error == expected) return 0;
  std::fprintf(stderr, "%zu bytes\nreader: %.300s\nlibrary: %.300s\n", bytes.size(),
               read.message_or_error.c_str(), expected.c_str());
  std::abort();
}
