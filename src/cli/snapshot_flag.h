#pragma once

#include <optional>
#include <string>

#include <absl/status/statusor.h>

#include "simile/v1/collections.pb.h"

namespace simile::cli {

// The help of --expect-snapshot ID.
inline constexpr const char* kExpectSnapshotHelp =
    "Fail unless this content is served: the id, or its first 8 digits or more";

// The snapshot id to send for --expect-snapshot: empty without the flag. The flag may be the id's
// first 8 digits or more, as answers and listings print it; they are completed from the content
// that the collection serves, or would return to.
// Errors: kFailedPrecondition when they begin neither.
absl::StatusOr<std::string> ExpectedSnapshotId(const std::optional<std::string>& flag,
                                               const v1::Collection& collection);

}  // namespace simile::cli
