#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace simile::service {

// The metadata entry that carries the caller's place in a distributed trace.
inline constexpr char kTraceParentKey[] = "traceparent";

// What a traceparent header (W3C Trace Context) says.
struct TraceParent {
  std::string trace_id;        // 32 lower-case hexadecimal digits, not all zero
  std::string parent_span_id;  // 16 of them
};

// Nothing unless the header has the form of version 00, or begins like it and has a later version.
std::optional<TraceParent> ParseTraceParent(std::string_view header);

}  // namespace simile::service
