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

// Adds an entry to that file, or a token to the entry of the same name, whose rights and other
// tokens stay. Makes a missing file. Replaces the file in one step, follows a link, and keeps mode,
// owner and group. Returns the principal as the file has it now: with several hashes where it was
// there before.
//   has_rights  a role, collections or an end were given: refused for a name that is there
// Errors: those of ReadAccessFile, before and after; an entry of this name where has_rights; an
//         entry whose access has ended; those of ReplaceFile.
absl::StatusOr<service::Principal> AddToAccessFile(const std::filesystem::path& file,
                                                   const service::Principal& principal,
                                                   bool has_rights);

}  // namespace simile::app
