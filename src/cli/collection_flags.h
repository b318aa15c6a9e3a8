#pragma once

#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "cli/client_flags.h"
#include "cli/command_line.h"
#include "simile/v1/collections.pb.h"
#include "simile/v1/types.pb.h"

namespace simile::cli {

// The help of --fields FIELD,FIELD: for commands that print whole items, and for commands that
// print tables.
inline constexpr const char* kFieldsHelp =
    "Payload fields to return (default: all); id is always there";
inline constexpr const char* kTableFieldsHelp =
    "Payload fields to return (default: title, year and a list; --json: all); id is always there";

// Asks for the fields of --fields, or for all fields without the flag. Leaves out `id` if the
// payload has no such field, because every answer has the items' ids.
void SelectFields(const std::vector<std::string>& fields, const v1::Collection& collection,
                  v1::PayloadSelector& selector);

// The help of --expect-snapshot ID.
inline constexpr const char* kExpectSnapshotHelp =
    "Fail unless this content is served: the id, or its first 8 digits or more";

// The snapshot id to send for --expect-snapshot; empty without the flag. The flag may give the
// first 8 or more digits, as answers print them. They are completed to the id of the served
// content, or of the content that a rollback returns to. Errors: kFailedPrecondition if neither id
// starts with the digits.
absl::StatusOr<std::string> ExpectedSnapshotId(const std::optional<std::string>& flag,
                                               const v1::Collection& collection);

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

// The default timeout of `fetch` and `lookup`, in seconds.
inline constexpr double kItemTimeoutSeconds = 10;

// Starts a request with the values of the flags. Errors: ExpectedSnapshotId's.
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
