#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace simile::service {

// The metadata entry that carries the caller's place in a distributed trace.
inline constexpr char kTraceParentKey[] = "traceparent";

// What a traceparent header (W3C Trace Context) says.
struct TraceParent {
  std::string trace_id;        // 32 lower-case hexadecimal digits, not all zero
  std::string parent_span_id;  // 16 lower-case hexadecimal digits, not all zero
};

// Nothing unless the header has the form of version 00, or a later version and the same beginning.
std::optional<TraceParent> ParseTraceParent(std::string_view header);

// The metadata entry that carries a request id, in requests and in responses.
inline constexpr char kRequestIdKey[] = "x-request-id";
inline constexpr std::size_t kRequestIdBytesMax = 128;

// The metadata entry of a response to a caller whose id is not used, and its text.
inline constexpr char kRequestIdReplacedKey[] = "x-request-id-replaced";
inline constexpr char kRequestIdRule[] = "an id of up to 128 printable ASCII characters is kept";

// Whether a caller's request id may be logged and returned: 1 to 128 printable ASCII characters.
bool IsUsableRequestId(std::string_view id);

// Makes request ids of 16 hexadecimal digits, distinct within a process and very likely between
// processes. Safe to call from any thread.
class RequestIds {
 public:
  explicit RequestIds(std::uint64_t seed) : next_(seed) {}
  std::string Next();

 private:
  std::atomic<std::uint64_t> next_;
};

}  // namespace simile::service
