#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <absl/status/statusor.h>

#include "base/long_work.h"
#include "data/load/user_scope.h"
#include "engine/snapshots/snapshot.h"
#include "filter/filters.h"
#include "filter/payload_view.h"
#include "simile/row_mask.h"

namespace simile::engine {

// A row that does not pass both filters does not exist for the call: it is neither found nor
// returned. All rows pass an empty filter. A user outside `users` does not exist either.
struct RequiredFilters {
  std::string_view of_request;
  std::string_view of_caller;  // from the access file; the caller is not shown its text
  data::UserScope users = {};  // that exist for the caller
};

// Whether the required filter of an access file can be applied to a snapshot. The filter must fit
// the fields, compare whole values (filter::CheckRequiredFilter), and name only fields whose
// meaning lasts (filter::CheckStableFields).
// Errors: INVALID_FILTER; work's.
absl::Status CheckCallerFilter(const engine::Snapshot& snapshot, std::string_view required_filter,
                               base::LongWork& work);

// The items and users of a snapshot that exist for a call: the items that pass its required filters
// and the users of its scope. A caller cannot tell an item that does not pass, or a user of others,
// from an id that the collection does not have. Borrows the snapshot.
class ExistingItems {
 public:
  //   field  the name of the request's filter: "options.required_filter"
  // Errors: INVALID_FILTER, "options.required_filter, column N: ..."; PERMISSION_DENIED when the
  //         caller's does not fit the collection; work's.
  // Cost: evaluating the filters, unless their rows are cached.
  static absl::StatusOr<ExistingItems> Create(const engine::Snapshot& snapshot,
                                              const RequiredFilters& filters,
                                              std::string_view field, base::LongWork& work);

  std::optional<Row> Find(std::string_view id) const;
  std::optional<Row> FindUser(std::string_view id) const;
  const data::UserScope& users() const { return users_; }
  // Whether any user may exist: false for a collection without profiles.
  bool has_users() const { return snapshot_->dataset->profiles.ids.size() > 0 || !users_.is_all(); }
  // The rows that a user, with or without a vector, has interacted with, ascending: also of items
  // that do not exist for the call. Empty for a user of whom nothing is known.
  std::span<const Row> SeenBy(std::string_view user_id) const;
  // How many of these rows are of items that exist. Cost: O(rows).
  std::uint32_t SeenCount(std::span<const Row> seen) const;
  // The estimated looks of the filters at rows and keywords.
  std::uint64_t looks() const { return looks_; }
  // The rows of the items that exist; null for all.
  const std::shared_ptr<const RowMask>& mask() const { return passing_.rows; }
  const filter::NamedRows& named_rows() const { return passing_; }
  // The fields that exist for the caller: those of the rows that pass its own filter. The filter of
  // a request hides no field: its sender knows the collection.
  const filter::PayloadView& fields() const { return fields_; }

  // The message for an id that was not found, with the nearest known id. With a required filter, or
  // when some users do not exist for the caller, no id is offered: it could be one that the caller
  // must not see.
  //   may_offer  whether to offer the nearest id, which takes a look at every id
  // Errors: work's.
  absl::StatusOr<std::string> ItemNotFoundText(std::string_view id, bool may_offer,
                                               base::LongWork& work) const;
  absl::StatusOr<std::string> UserNotFoundText(std::string_view id, bool may_offer,
                                               base::LongWork& work) const;

 private:
  ExistingItems(const engine::Snapshot& snapshot, filter::NamedRows passing,
                filter::PayloadView fields, std::uint64_t looks, data::UserScope users)
      : snapshot_(&snapshot),
        passing_(std::move(passing)),
        fields_(std::move(fields)),
        looks_(looks),
        users_(std::move(users)) {}

  //   kind       "item", "user"
  //   may_offer  another one of `ids`
  absl::StatusOr<std::string> NotFoundText(std::string_view kind, std::string_view id,
                                           bool may_offer, const data::IdIndex& ids,
                                           base::LongWork& work) const;

  const engine::Snapshot* snapshot_;
  filter::NamedRows passing_;
  filter::PayloadView fields_;
  std::uint64_t looks_;
  data::UserScope users_;
};

}  // namespace simile::engine
