#include "cli/collection_choice.h"

#include <fmt/format.h>

namespace simile::cli {

absl::StatusOr<v1::Collection> ChooseCollection(const Connection& connection,
                                                const std::optional<std::string>& name) {
  if (name) return connection.Get(*name);
  absl::StatusOr<v1::ListCollectionsResponse> listed = connection.List();
  if (!listed.ok()) return listed.status();
  if (listed->collections().empty()) {
    return absl::NotFoundError(
        fmt::format("the server at {} has no collections; load one with: simile load NAME FOLDER",
                    connection.address()));
  }
  if (listed->collections_size() > 1) {
    std::string names;
    for (const v1::Collection& collection : listed->collections()) {
      names += (names.empty() ? "" : ", ") + collection.name();
    }
    return absl::InvalidArgumentError(
        fmt::format("the server at {} has {} collections; name one with --collection: {}",
                    connection.address(), listed->collections_size(), names));
  }
  return listed->collections(0);
}

}  // namespace simile::cli
