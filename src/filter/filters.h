#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include "base/long_work.h"
#include "data/load/dataset.h"
#include "filter/expression.h"
#include "filter/group_field.h"
#include "filter/payload_index.h"
#include "filter/payload_view.h"
#include "simile/row_mask.h"

namespace simile::filter {

// The masks of the most recently used filters by canonical text, and of intersections by name
// (NamedRows), within a budget of bytes. Safe to call from many threads.
class MaskCache {
 public:
  explicit MaskCache(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Null when the mask is not cached.
  std::shared_ptr<const RowMask> Find(std::string_view text);
  // Caches the mask and evicts the least recently used ones. A mask beyond the budget is not
  // cached.
  void Insert(const std::string& text, std::shared_ptr<const RowMask> mask);

  std::uint64_t bytes() const;

 private:
  struct Entry {
    std::string text;
    std::shared_ptr<const RowMask> mask;
    std::uint64_t bytes = 0;
  };

  void Drop(std::list<Entry>::iterator entry);

  const std::uint64_t bytes_max_;
  mutable std::mutex mutex_;  // guards the members below
  std::list<Entry> entries_;  // last used first
  // By the text of the entry, which callers choose. The hash is seeded per process, so a caller
  // cannot construct texts that collide.
  absl::flat_hash_map<absl::string_view, std::list<Entry>::iterator> places_;
  std::uint64_t bytes_ = 0;
};

// A filter that was parsed and fits the fields.
struct PreparedFilter {
  std::string text;                     // canonical
  std::shared_ptr<const RowMask> rows;  // the rows that pass; null when they are not cached
  Expression expression;
  std::uint64_t looks = 0;  // estimated looks at rows and keywords; 0 when cached
};

// Rows, with a name that no other rows of the snapshot have. The name is the canonical text of a
// filter; an intersection has both names. Rows that no filter made have the empty name.
struct NamedRows {
  std::string name;
  std::shared_ptr<const RowMask> rows;  // null for all
};

// The number of rows in a set, and how many of these rows are in a group of a field.
struct GroupedRowCounts {
  std::uint64_t rows = 0;
  std::uint64_t in_groups = 0;
};

// Counts the rows of a set that are grouped.
//   rows     null for all
//   grouped  the rows that are in a group
// Cost: a pass over the words of both masks.
GroupedRowCounts CountRowsInGroups(const RowMask* rows, const RowMask& grouped);

// Finds the rows of a dataset that pass a filter. Built once for each snapshot; safe to call from
// many threads.
class Filters {
 public:
  // Indexes the payload. Borrows the dataset for its life.
  static std::unique_ptr<const Filters> Create(const data::Dataset& dataset,
                                               std::string collection);

  // Reads a filter and looks for its rows in the cache: filters with the same canonical text share
  // a mask.
  //   fields  that it may name
  // Errors: kInvalidArgument, `column N: ` and the reason; work's.
  absl::StatusOr<PreparedFilter> Prepare(std::string_view filter, const PayloadView& fields,
                                         base::LongWork& work) const;
  // Whether a call may look this often at rows and keywords. Checked before the first filter is
  // evaluated.
  //   fields  that exist for the caller; if some do not, the message gives no figure of all rows
  // Errors: kInvalidArgument.
  absl::Status CheckLooks(std::uint64_t looks, const PayloadView& fields) const;
  // The rows that pass.
  // Errors: work's.
  absl::StatusOr<std::shared_ptr<const RowMask>> Rows(const PreparedFilter& filter,
                                                      base::LongWork& work) const;

  // The rows that pass a part of a filter. Does not use the cache. REQUIRES: Prepare has read the
  // filter.
  // Errors: work's.
  absl::StatusOr<RowMask> RowsOfPart(const Expression& part, base::LongWork& work) const;

  // The rows in both a and b. Cached like the rows of a filter: a device recognises the same mask
  // at once, but compares a new mask by its content, O(words). Cost: a copy of a mask when neither
  // is null and the result is not cached.
  NamedRows Intersection(const NamedRows& a, const NamedRows& b) const;

  // The fields that the rows of a filter have. The result is kept for later calls.
  // Errors: work's.
  absl::StatusOr<PayloadView> FindFields(const NamedRows& rows, base::LongWork& work) const;

  // A field to group rows by.
  //   fields  that exist for the caller
  // Errors: kInvalidArgument when no row has the field, or when rows cannot be grouped by its type;
  //         the message lists the fields that rows can be grouped by.
  absl::StatusOr<GroupField> FindGroups(std::string_view field, const PayloadView& fields) const;

  // The rows that are in a group of a field; a row with an empty list is in none. Cached like the
  // rows of a filter. REQUIRES: FindGroups finds the field.
  // Errors: work's.
  absl::StatusOr<std::shared_ptr<const RowMask>> RowsInGroups(std::string_view field,
                                                              base::LongWork& work) const;

  // Counts the rows that a query without a filter may return. The counts are kept for each field,
  // so that only the first call of a snapshot looks at the rows.
  //   searchable  the same rows in every call; null for all
  // REQUIRES: FindGroups finds the field.
  // Errors: work's.
  absl::StatusOr<GroupedRowCounts> CountSearchable(std::string_view field,
                                                   const RowMask* searchable,
                                                   base::LongWork& work) const;

  const PayloadIndex& payload() const { return payload_; }
  // The bytes of the payload index and the cached masks.
  std::uint64_t bytes() const { return payload_.bytes() + cache_.bytes(); }

 private:
  Filters(const data::Dataset& dataset, std::string collection, PayloadIndex payload);

  const data::Dataset& dataset_;
  const std::string collection_;
  const PayloadIndex payload_;
  mutable MaskCache cache_;
  mutable std::mutex mutex_;                                                // guards what follows
  mutable absl::flat_hash_map<std::string, PayloadView::Visible> visible_;  // by NamedRows::name
  mutable absl::flat_hash_map<std::string, GroupedRowCounts> searchable_;   // by field
};

}  // namespace simile::filter
