#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "service/access/access_policy.h"

namespace simile::app {

// The values of an entry of the access file, as the file and `simile token` take them. Errors are
// kInvalidArgument and say what is wrong and what would be right; the caller adds the place.

// Checks a principal's name: 1 to 128 bytes that CheckVisible accepts.
absl::Status CheckPrincipalName(std::string_view name);

// Checks that people can tell the text from other text: valid UTF-8, no control characters, no
// invisible characters, no space at either end.
absl::Status CheckVisible(std::string_view text);

// Reads a SHA-256 in hexadecimal digits. Refuses digits with a pattern, such as zeros, which no
// token's hash has. Also refuses the hashes of texts that are no token: an empty text, a line end,
// the word TOKEN.
absl::StatusOr<service::TokenHash> ReadTokenHash(std::string_view text);

// Reads when an access ends: a time as in "2027-05-31T12:00:00Z", or a day, which means its
// beginning in UTC. Takes 1970 to 2262, the range of the clock.
absl::StatusOr<std::chrono::system_clock::time_point> ReadExpiry(std::string_view text);

// Reads the file that says who may call (server.access_file, docs/access.md):
//
//   {"principals": [{"name": "ranker", "role": "read", "token_sha256": ["9f86d0..."]}]}
//
// Checks all that needs no collection: names, roles, hashes, times, filters. Unknown names are
// refused with the nearest known one.
// Errors: kInvalidArgument, which names the file, the principal and what would be right.
absl::StatusOr<std::shared_ptr<const service::AccessPolicy>> ReadAccessFile(
    const std::filesystem::path& file);

// An entry of that file for a new token; `simile token` prints it.
std::string AccessEntryText(const service::Principal& principal);

// Adds an entry to the access file. If the file has an entry of this name, adds the token to that
// entry and keeps its rights and other tokens. Creates a missing file. Replaces the file in one
// step, follows a link, and keeps mode, owner and group. Returns the principal as the file now has
// it, with all of its hashes.
//   has_rights  the caller gave a role, collections or an end, which an existing entry refuses
// Errors: those of ReadAccessFile, before and after; an entry of this name where has_rights; an
//         entry whose access has ended; those of ReplaceFile.
absl::StatusOr<service::Principal> AddToAccessFile(const std::filesystem::path& file,
                                                   const service::Principal& principal,
                                                   bool has_rights);

}  // namespace simile::app
