#include "service/access/call_access.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"

namespace simile::service {

absl::Status CallAccess::CheckCollection(std::string_view collection) const {
  if (principal() == nullptr || principal()->MaySee(collection)) return absl::OkStatus();
  return base::Error(
      base::ErrorReason::kPermissionDenied,
      fmt::format("{} may not use the collection {}; it may use {}", principal()->name,
                  base::Quoted(collection), fmt::join(principal()->collections, ", ")),
      "collection");
}

absl::Status CallAccess::CheckFolder(std::string_view collection, std::string_view folder) const {
  if (!is_bound() || folder.empty()) return absl::OkStatus();
  const std::filesystem::path named(folder);
  if (*named.begin() == std::filesystem::path(collection)) return absl::OkStatus();
  return base::Error(
      base::ErrorReason::kPermissionDenied,
      fmt::format(
          "{} may use some collections only, so it may load {} from the folder {} and those "
          "inside, not from {}",
          principal()->name, base::Quoted(collection), base::Quoted(collection),
          base::Quoted(folder)),
      "folder");
}

absl::Status CallAccess::CheckSeesAllRows(std::string_view collection) const {
  if (required_filter().empty()) return absl::OkStatus();
  return base::Error(base::ErrorReason::kPermissionDenied,
                     fmt::format("this describes all rows of {}, of which {} sees some",
                                 base::Quoted(collection), principal()->name));
}

absl::Status CallAccess::HoldBytes(std::uint64_t bytes) {
  if (caller_.use == nullptr) return absl::OkStatus();
  absl::Status held = caller_.use->HoldBytes(*caller_.principal, bytes);
  if (held.ok()) bytes_ = bytes;
  return held;
}

absl::Status CallAccess::HoldQueries(std::uint64_t queries) {
  if (caller_.use == nullptr) return absl::OkStatus();
  absl::Status held = caller_.use->HoldQueries(*caller_.principal, queries);
  if (held.ok()) queries_ = queries;
  return held;
}

}  // namespace simile::service
