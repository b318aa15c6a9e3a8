#include "service/calls/call_ids.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "base/split_mix.h"

namespace simile::service {
namespace {

// Version "-" trace id "-" span id "-" flags. Later versions may append more after another '-'.
constexpr std::string_view kKnownVersion = "00";
constexpr std::string_view kInvalidVersion = "ff";
constexpr std::size_t kVersionDigits = 2;
constexpr std::size_t kTraceIdDigits = 32;
constexpr std::size_t kSpanIdDigits = 16;
constexpr std::size_t kFlagsDigits = 2;
constexpr std::size_t kTraceIdAt = kVersionDigits + 1;
constexpr std::size_t kSpanIdAt = kTraceIdAt + kTraceIdDigits + 1;
constexpr std::size_t kFlagsAt = kSpanIdAt + kSpanIdDigits + 1;
constexpr std::size_t kKnownBytes = kFlagsAt + kFlagsDigits;

bool IsLowerHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsId(std::string_view text) {
  return IsLowerHex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

bool IsVersion(std::string_view version, std::string_view rest) {
  if (!IsLowerHex(version) || version == kInvalidVersion) return false;
  return rest.empty() || (version != kKnownVersion && rest.front() == '-');
}

}  // namespace

std::optional<TraceParent> ParseTraceParent(std::string_view header) {
  if (header.size() < kKnownBytes ||
      !IsVersion(header.substr(0, kVersionDigits), header.substr(kKnownBytes)) ||
      header[kTraceIdAt - 1] != '-' || header[kSpanIdAt - 1] != '-' ||
      header[kFlagsAt - 1] != '-') {
    return std::nullopt;
  }
  const std::string_view trace_id = header.substr(kTraceIdAt, kTraceIdDigits);
  const std::string_view span_id = header.substr(kSpanIdAt, kSpanIdDigits);
  if (!IsId(trace_id) || !IsId(span_id) || !IsLowerHex(header.substr(kFlagsAt, kFlagsDigits))) {
    return std::nullopt;
  }
  return TraceParent{std::string(trace_id), std::string(span_id)};
}

bool IsUsableRequestId(std::string_view id) {
  return !id.empty() && id.size() <= kRequestIdBytesMax &&
         std::all_of(id.begin(), id.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::string RequestIds::Next() {
  // Both steps are bijections: distinct counters give distinct ids.
  return fmt::format(
      "{:016x}", base::SplitMix(next_.fetch_add(base::kSplitMixStep, std::memory_order_relaxed)));
}

}  // namespace simile::service
