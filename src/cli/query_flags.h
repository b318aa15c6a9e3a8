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
  std::optional<std::string> items_of;  // the collection that items are of; unset: `collection`
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
// All of them.
void AddQueryFlags(Command& command, QueryFlags& flags);
// The flags of a query to explain: all but --paged, --partial, --fields and --with-rows.
void AddExplainedQueryFlags(Command& command, QueryFlags& flags);
// Errors: those of ReadIdFile.
// REQUIRES: the check of AddQueryFlags was made.
absl::StatusOr<v1::SearchOptions> MakeSearchOptions(const QueryFlags& flags);

// Names the item that a query, an example or a blend is about.
//   items_of  QueryFlags::items_of
template <class Target>
void SetItem(const std::optional<std::string>& items_of, const std::string& id, Target& target) {
  if (!items_of) return target.set_id(id);
  target.mutable_item()->set_collection(*items_of);
  target.mutable_item()->set_id(id);
}

// " of cvs"; empty where items are of the collection that is searched.
std::string OfCollection(const std::optional<std::string>& items_of);

// Sets what depends on the collection: what --expect-snapshot and --fields ask for.
// Errors: those of ExpectedSnapshotId.
absl::Status SetCollectionOptions(const QueryFlags& flags, const v1::Collection& collection,
                                  v1::SearchOptions& options);

// The default timeout of these four.
inline constexpr double kQueryTimeoutSeconds = 10;

// The flags of users that `recommend` and `explain` share.
struct UserFlags {
  bool exclude_seen = false;
  std::optional<double> user_weight;
  std::optional<std::string> cold_start;
  std::optional<std::string> cold_start_field;
};
void AddUserFlags(Command& command, UserFlags& flags);
// Errors: kInvalidArgument for flags that need --like, or exclude it.
//   has_like  --like was given
absl::Status SetUserOptions(const UserFlags& flags, bool has_like, v1::SearchOptions& options);
// A query by a blend of a user's profile and an item.
void SetBlend(const UserFlags& flags, const std::optional<std::string>& items_of,
              const std::string& user, const std::string& item, v1::Query& query);

// The flags that `search`, `similar` and `explain` share.
struct ExampleFlags {
  std::vector<std::string> like;
  std::vector<std::string> unlike;
  std::optional<std::string> strategy;

  // True for a strategy alone too, so that TurnIntoExamples can refuse it.
  bool given() const { return !like.empty() || !unlike.empty() || strategy.has_value(); }
};
void AddExampleFlags(Command& command, ExampleFlags& flags);

// Replaces the query's target by examples: the target itself, --like and --unlike.
//   items_of  QueryFlags::items_of
//   query     its target is a vector, an item or unset
// Errors: kInvalidArgument for an unknown strategy, or one without --like and --unlike.
absl::Status TurnIntoExamples(const ExampleFlags& flags, const std::optional<std::string>& items_of,
                              v1::Query& query);

}  // namespace simile::cli
