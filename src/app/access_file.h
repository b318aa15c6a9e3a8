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

// A principal's name: 1 to 128 bytes that look like what they are. It must be valid UTF-8.
absl::Status CheckPrincipalName(std::string_view name);

// Text that can be told from other text by looking at it: no control characters, no invisible ones,
// no space at its ends.
absl::Status CheckVisible(std::string_view text);

// SHA-256 in hexadecimal digits. Refuses what no token's hash can be, such as zeros
// among it, and the hashes of no token at all: of an empty text, a line end, the word TOKEN.
absl::StatusOr<service::TokenHash> ReadTokenHash(std::string_view text);

// When an access ends: a time as in "2027-05-31T12:00:00Z", or a day, at whose beginning in UTC it
// ends. From 1970 to 2262, which the clock can tell apart.
absl::StatusOr<std::chrono::system_clock::time_point> ReadExpiry(std::string_view text);

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
