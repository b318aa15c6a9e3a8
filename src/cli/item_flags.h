#pragma once

#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "cli/client_flags.h"
#include "cli/command_line.h"
#include "cli/fields_flag.h"
#include "cli/snapshot_flag.h"

namespace simile::cli {

// The flags that `fetch` and `lookup` share.
struct ItemFlags {
  ClientFlags client;
  std::optional<std::string> collection;
  std::vector<std::string> fields;
  std::optional<std::string> required_filter;
  std::optional<std::string> expected_snapshot;
  bool with_rows = false;
};
//   fields_help  of --fields
void AddItemFlags(Command& command, ItemFlags& flags, const char* fields_help);

// The default timeout of these two.
inline constexpr double kItemTimeoutSeconds = 10;

// Starts a request with what the flags say.
// Errors: those of ExpectedSnapshotId.
template <class Request>
absl::StatusOr<Request> ItemRequest(const ItemFlags& flags, const v1::Collection& collection) {
  absl::StatusOr<std::string> expected = ExpectedSnapshotId(flags.expected_snapshot, collection);
  if (!expected.ok()) return expected.status();
  Request request;
  request.set_collection(collection.name());
  SelectFields(flags.fields, collection, *request.mutable_payload());
  request.set_required_filter(flags.required_filter.value_or(""));
  request.set_expected_snapshot_id(*std::move(expected));
  request.set_with_rows(flags.with_rows);
  request.set_reply_bytes_max(kReplyBytesMax);
  return request;
}

}  // namespace simile::cli
