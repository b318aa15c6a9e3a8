#include "service/collection_name.h"

#include <algorithm>

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::service {

absl::Status CheckCollectionName(std::string_view field, std::string_view name,
                                 const Limits& limits) {
  if (name.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: empty; name a collection (CollectionService.List shows them)", field));
  }
  if (name.size() > limits.collection_name_bytes_max) {
    return absl::InvalidArgumentError(fmt::format("{}: {} bytes; a name has at most {}", field,
                                                  base::Grouped(name.size()),
                                                  limits.collection_name_bytes_max));
  }
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  };
  if (name.front() == '.' || !std::all_of(name.begin(), name.end(), allowed)) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {} is not a name; a name has letters, digits, '-', '_' and '.', and does "
                    "not start with '.'",
                    field, base::Quoted(name)));
  }
  return absl::OkStatus();
}

}  // namespace simile::service
