#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <absl/status/status.h>
#include <fmt/format.h>

#include "base/error_detail.h"
#include "service/field_path.h"

namespace simile::service {

// An error of a field of the request: "queries[3].k: " and what is wrong with it.
template <class... Parts>
absl::Status RefuseFor(base::ErrorReason reason, const FieldPath& field,
                       fmt::format_string<Parts...> format, Parts&&... parts) {
  const std::string name = fmt::format("{}", field);
  return base::Error(reason, name + ": " + fmt::format(format, std::forward<Parts>(parts)...),
                     name);
}

// INVALID_FIELD: its value is not allowed.
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

}  // namespace simile::service
