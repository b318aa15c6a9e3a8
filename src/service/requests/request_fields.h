#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <fmt/format.h>

#include "base/error_detail.h"
#include "simile/limits.h"

namespace simile::service {

// A field of a request as messages name it: "queries[3].exclude_ids[7]". Formatted only when a
// message needs it, so checking a valid request formats nothing. Borrows its name and its parent.
struct FieldPath {
  std::string_view name;
  const FieldPath* parent = nullptr;
  int index = -1;  // in a repeated field; -1 for none
};

}  // namespace simile::service

template <>
struct fmt::formatter<simile::service::FieldPath> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  format_context::iterator format(const simile::service::FieldPath& path,
                                  format_context& context) const {
    if (path.parent != nullptr) {
      context.advance_to(fmt::format_to(format(*path.parent, context), "."));
    }
    context.advance_to(fmt::format_to(context.out(), "{}", path.name));
    return path.index < 0 ? context.out() : fmt::format_to(context.out(), "[{}]", path.index);
  }
};

namespace simile::service {

// An error of a field of the request: "queries[3].k: " and what is wrong with it.
template <class... Parts>
absl::Status RefuseFor(base::ErrorReason reason, const FieldPath& field,
                       fmt::format_string<Parts...> format, Parts&&... parts) {
  const std::string name = fmt::format("{}", field);
  return base::Error(reason, name + ": " + fmt::format(format, std::forward<Parts>(parts)...),
                     name);
}

// INVALID_FIELD: the field's value is not allowed.
template <class... Parts>
absl::Status Refuse(const FieldPath& field, fmt::format_string<Parts...> format, Parts&&... parts) {
  return RefuseFor(base::ErrorReason::kInvalidField, field, format, std::forward<Parts>(parts)...);
}

// INVALID_FIELD: an enum is not set, or has a value that this server does not know.
//   allowed  "STRATEGY_BEST_SCORE or STRATEGY_SUM_SCORES"
inline absl::Status RefuseEnum(const FieldPath& field, int value, std::string_view allowed) {
  return Refuse(field, "{}; set {}", value == 0 ? "not set" : fmt::format("{} is unknown", value),
                allowed);
}

// Checks of single fields, shared by all requests. All errors are INVALID_FIELD; all checks are
// pure.

absl::Status CheckId(const FieldPath& field, std::string_view id, const Limits& limits);
// Checks that a call holds 1 to `most` queries or ids.
absl::Status CheckCount(const FieldPath& field, std::uint64_t count, std::uint32_t most);
absl::Status CheckK(const FieldPath& field, std::uint32_t k, const Limits& limits);
absl::Status CheckScoreThreshold(const FieldPath& field, float score_threshold);
absl::Status CheckFilterSize(const FieldPath& field, std::string_view filter, const Limits& limits);

// Checks a collection's name: 1 to limits.collection_name_bytes_max letters, digits, '-', '_' and
// '.', not starting with '.', since it is also a metric label and a health service name; and not
// kLivenessName.
//   field  names it in the error: "collection"
// Errors: INVALID_FIELD.
absl::Status CheckCollectionName(const FieldPath& field, std::string_view name,
                                 const Limits& limits);

}  // namespace simile::service
