#pragma once

#include <absl/status/statusor.h>

#include "data/folder.h"
#include "data/plan.h"
#include "simile/limits.h"

namespace simile::data {

// Finds a collection's files: what collection.json names, and for the rest the usual names, in the
// folder itself or in its media/ (items) and users/ (users) subfolders. Only names are examined.
//   path  the folder as the caller gave it, kept in the result, whose links_within stays empty
// Errors: kNotFound when there are no vectors or a named file is missing; kInvalidArgument for a
//         malformed collection.json, two candidates for one part, or users of whom only
//         ids or only vectors are there.
absl::StatusOr<CollectionFiles> DiscoverFiles(const Folder& folder,
                                              const std::filesystem::path& path,
                                              const Limits& limits);

}  // namespace simile::data
