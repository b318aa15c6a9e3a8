#include "service/collection_name.h"

#include <algorithm>

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "service/health.h"
#include "service/refuse.h"

namespace simile::service {

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
