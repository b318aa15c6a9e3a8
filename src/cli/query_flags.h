#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "cli/client_flags.h"
#include "cli/command_line.h"
#include "simile/v1/search.pb.h"

namespace simile::cli {

// The flags that `search`, `similar`, `recommend` and `explain` share.
struct QueryFlags {
  ClientFlags client;
  std::optional<std::string> collection;
  // The collection of the items to compare with; unset: `collection`.
  std::optional<std::string> items_of;
  std::optional<std::uint32_t> k;
  std::optional<std::uint32_t> offset;
  std::optional<double> score_threshold;
  std::vector<std::string> exclude_ids;
  std::optional<std::string> allowed_file;
  std::optional<std::string> filter;
  std::optional<std::string> required_filter;
  std::vector<std::string> fields;
  bool with_rows = false;
  bool whole_receipt = false;
  bool bulk = false;
  bool partial = false;
  std::optional<std::string> group_by;
  std::optional<std::uint32_t> group_size;
  std::optional<double> diversity;  // MMR lambda
  std::optional<std::uint32_t> candidates;
  bool paged = false;
  std::optional<std::string> page_token;
  std::optional<std::string> expected_snapshot;
};
// Adds all of these flags.
void AddQueryFlags(Command& command, QueryFlags& flags);
// Adds the flags of a query to explain: all but --paged, --partial, --fields and --with-rows.
void AddExplainedQueryFlags(Command& command, QueryFlags& flags);
// Makes the options that do not depend on the collection; reads the file of --allow. Errors:
// ReadIdFile's. REQUIRES: the check of AddQueryFlags was made.
absl::StatusOr<v1::SearchOptions> MakeSearchOptions(const QueryFlags& flags);

// Sets the item of a query, an example or a blend.
//   items_of  QueryFlags::items_of
template <class Target>
void SetItem(const std::optional<std::string>& items_of, const std::string& id, Target& target) {
  if (!items_of) return target.set_id(id);
  target.mutable_item()->set_collection(*items_of);
  target.mutable_item()->set_id(id);
}

// " of cvs" for headings; empty if the items belong to the searched collection.
std::string OfCollection(const std::optional<std::string>& items_of);

// Sets the options that depend on the collection: --expect-snapshot and --fields. Errors:
// ExpectedSnapshotId's.
absl::Status SetCollectionOptions(const QueryFlags& flags, const v1::Collection& collection,
                                  v1::SearchOptions& options);

// The default timeout of `search`, `similar`, `recommend` and `explain`, in seconds.
inline constexpr double kQueryTimeoutSeconds = 10;

// The flags for users that `recommend` and `explain` share.
struct UserFlags {
  bool exclude_seen = false;
  std::optional<double> user_weight;
  std::optional<std::string> cold_start;
  std::optional<std::string> cold_start_field;
};
void AddUserFlags(Command& command, UserFlags& flags);
// Sets the options of these flags. Errors: kInvalidArgument for a flag that needs --like, or that
// excludes it.
//   has_like  --like was given
absl::Status SetUserOptions(const UserFlags& flags, bool has_like, v1::SearchOptions& options);
// Sets the query to a blend of a user's profile and an item.
void SetBlend(const UserFlags& flags, const std::optional<std::string>& items_of,
              const std::string& user, const std::string& item, v1::Query& query);

// The flags that `search`, `similar` and `explain` share.
struct ExampleFlags {
  std::vector<std::string> like;
  std::vector<std::string> unlike;
  std::optional<std::string> strategy;

  // True also for --strategy alone, so that TurnIntoExamples can refuse it.
  bool given() const { return !like.empty() || !unlike.empty() || strategy.has_value(); }
};
void AddExampleFlags(Command& command, ExampleFlags& flags);

// Replaces the query's target by examples: the target, and the items of --like and --unlike.
//   items_of  QueryFlags::items_of
//   query     its target is a vector, an item or unset
// Errors: kInvalidArgument for an unknown strategy, or one without --like and --unlike.
absl::Status TurnIntoExamples(const ExampleFlags& flags, const std::optional<std::string>& items_of,
                              v1::Query& query);

}  // namespace simile::cli
