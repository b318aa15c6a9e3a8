#pragma once

#include <filesystem>
#include <memory>

#include <absl/status/statusor.h>

#include "service/access/access_policy.h"

namespace simile::app {

// Reads the file that says who may call (server.access_file, docs/access.md):
//
//   {"principals": [{"name": "ranker", "role": "read", "token_sha256": ["9f86d0..."]}]}
//
// Checks everything that can be checked without a collection: names, roles, hashes, times, filters.
// Unknown names are refused with the nearest known one.
// Errors: kInvalidArgument, which names the file, the principal and what would be right.
absl::StatusOr<std::shared_ptr<const service::AccessPolicy>> ReadAccessFile(
    const std::filesystem::path& file);

// An entry of that file for a new token; `simile token` prints it.
std::string AccessEntryText(const service::Principal& principal);

// Adds the entry to that file, which is made if there is none, and replaced in one step: a server
// that runs reads the old text or the new one. Where the file has a principal of this name, adds
// the token to that, whose other tokens and rights stay. A link is followed; the file's mode, owner
// and group are kept. Returns whether there was such a principal.
//   has_rights  the principal's role, collections or end are asked for, and no others will do
// Errors: those of ReadAccessFile, of the file as it is and as it would be; a principal of this
// name
//         where has_rights; those of ReplaceFile.
absl::StatusOr<bool> AddToAccessFile(const std::filesystem::path& file,
                                     const service::Principal& principal, bool has_rights);

}  // namespace simile::app
