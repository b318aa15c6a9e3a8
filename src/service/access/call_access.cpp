#include "service/access/call_access.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"

namespace simile::service {

PermittedCollection::PermittedCollection(std::string_view name, PrincipalPtr principal)
    : name_(name), principal_(std::move(principal)) {}

std::string_view PermittedCollection::required_filter() const {
  return principal_ ? std::string_view(principal_->required_filter) : "";
}

data::UserScope PermittedCollection::users() const {
  return principal_ ? principal_->users : data::UserScope();
}

bool PermittedCollection::sees_all_collections() const {
  return principal_ == nullptr || principal_->collections.empty();
}

absl::Status PermittedCollection::CheckMayChange() const {
  if (principal_ == nullptr || principal_->role >= Role::kWrite) return absl::OkStatus();
  return base::Error(base::ErrorReason::kPermissionDenied,
                     fmt::format("{} has the role {}; changes need {}", principal_->name,
                                 NameOf(principal_->role), NameOf(Role::kWrite)));
}

absl::Status PermittedCollection::CheckFolder(std::string_view folder) const {
  if (sees_all_collections() || folder.empty()) return absl::OkStatus();
  const std::filesystem::path named(folder);
  if (*named.begin() == std::filesystem::path(name_)) return absl::OkStatus();
  return base::Error(
      base::ErrorReason::kPermissionDenied,
      fmt::format(
          "{} may use some collections only, so it may load {} from the folder {} and those "
          "inside, not from {}",
          principal_->name, base::Quoted(name_), base::Quoted(name_), base::Quoted(folder)),
      "folder");
}

absl::Status PermittedCollection::WithoutOtherNames(const absl::Status& status) const {
  if (status.ok() || sees_all_collections() ||
      base::ReasonOf(status) != base::ErrorReason::kCollectionNotFound) {
    return status;
  }
  return base::Error(base::ErrorReason::kCollectionNotFound,
                     fmt::format("no collection {}", base::Quoted(name_)), "collection");
}

absl::StatusOr<PermittedCollection> CallAccess::Permit(std::string_view collection) const {
  if (principal() == nullptr || principal()->MaySee(collection)) {
    return PermittedCollection(collection, caller_.principal);
  }
  return base::Error(
      base::ErrorReason::kPermissionDenied,
      fmt::format("{} may not use the collection {}; it may use {}", principal()->name,
                  base::Quoted(collection), fmt::join(principal()->collections, ", ")),
      "collection");
}

absl::StatusOr<PermittedServer> CallAccess::PermitServer() const {
  if (sees_all()) return PermittedServer();
  return base::Error(
      base::ErrorReason::kPermissionDenied,
      fmt::format("this reports on all collections and rows, and {} may see only some of them",
                  principal()->name));
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
