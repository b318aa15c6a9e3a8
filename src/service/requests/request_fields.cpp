#include "service/requests/request_fields.h"

#include <algorithm>
#include <cmath>

#include <absl/strings/ascii.h>

#include "base/message_text.h"
#include "service/calls/health.h"

namespace simile::service {

absl::Status CheckId(const FieldPath& field, std::string_view id, const Limits& limits) {
  if (id.empty()) return Refuse(field, "empty; an id has 1 to {} bytes", limits.id_bytes_max);
  if (id.size() <= limits.id_bytes_max) return absl::OkStatus();
  return Refuse(field, "{} bytes; an id has at most {}", base::Grouped(id.size()),
                limits.id_bytes_max);
}

absl::Status CheckCount(const FieldPath& field, std::uint64_t count, std::uint32_t most) {
  if (count >= 1 && count <= most) return absl::OkStatus();
  return Refuse(field, "{} given; a call takes 1 to {}", base::Grouped(count), base::Grouped(most));
}

absl::Status CheckK(const FieldPath& field, std::uint32_t k, const Limits& limits) {
  if (k >= 1 && k <= limits.k_max) return absl::OkStatus();
  return Refuse(field, "{}; ask for 1 to {}", base::Grouped(k), base::Grouped(limits.k_max));
}

absl::Status CheckScoreThreshold(const FieldPath& field, float score_threshold) {
  if (std::isfinite(score_threshold)) return absl::OkStatus();
  return Refuse(field, "{}; give a finite number, or leave it out for no threshold",
                std::isnan(score_threshold) ? "NaN" : "infinite");
}

absl::Status CheckFilterSize(const FieldPath& field, std::string_view filter,
                             const Limits& limits) {
  if (filter.size() <= limits.filter_bytes_max) return absl::OkStatus();
  return Refuse(field, "{} bytes; a filter may have {}; allow_ids takes long lists of ids",
                base::Grouped(filter.size()), base::Grouped(limits.filter_bytes_max));
}

absl::Status CheckCollectionName(const FieldPath& field, std::string_view name,
                                 const Limits& limits) {
  const auto refuse = [&](std::string_view what) { return Refuse(field, "{}", what); };
  if (name.empty()) {
    return refuse("empty; name a collection (CollectionService.ListCollections shows them)");
  }
  if (name.size() > limits.collection_name_bytes_max) {
    return refuse(fmt::format("{} bytes; a name has at most {}", base::Grouped(name.size()),
                              limits.collection_name_bytes_max));
  }
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  };
  if (name.front() == '.' || !std::all_of(name.begin(), name.end(), allowed)) {
    return refuse(
        fmt::format("{} is not a name; a name has letters, digits, '-', '_' and '.', and does not "
                    "start with '.'",
                    base::Quoted(name)));
  }
  if (name == kLivenessName) {
    return refuse(
        fmt::format("{} is the name of a health check; choose another one", base::Quoted(name)));
  }
  return absl::OkStatus();
}

}  // namespace simile::service
