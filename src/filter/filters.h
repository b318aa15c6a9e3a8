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
#include "data/dataset.h"
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
  // By the text of the entry, which callers choose: its hash differs from process to process, so
  // that nobody can send texts of which all have the same.
  absl::flat_hash_map<absl::string_view, std::list<Entry>::iterator> places_;
  std::uint64_t bytes_ = 0;
};

// A filter that was read and fits the fields.
struct PreparedFilter {
  std::string text;                     // canonical
  std::shared_ptr<const RowMask> rows;  // that pass; null when they are not cached
  Expression expression;
  std::uint64_t looks = 0;  // at rows and keywords, to find its rows, estimated; 0 when cached
};

// Rows, and what tells them from all others of a snapshot: the canonical text of a filter, or the
// names of those whose intersection they are. Rows that no filter made have the empty name.
struct NamedRows {
  std::string name;
  std::shared_ptr<const RowMask> rows;  // null for all
};

// How many rows of a set there are, and how many of them are in a group of a field.
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
  // Whether a call may look so often at rows and keywords: the sum of its filters, before any is
  // evaluated.
  //   fields  that exist for the caller: where not all do, the message tells no figure of all rows
  // Errors: kInvalidArgument.
  absl::Status CheckLooks(std::uint64_t looks, const PayloadView& fields) const;
  // The rows that pass.
  // Errors: work's.
  absl::StatusOr<std::shared_ptr<const RowMask>> Rows(const PreparedFilter& filter,
                                                      base::LongWork& work) const;

  // The rows that pass a part of a filter. Neither looked for in the cache nor kept there.
  // REQUIRES: Prepare has read the filter.
  // Errors: work's.
  absl::StatusOr<RowMask> RowsOfPart(const Expression& part, base::LongWork& work) const;

  // The rows of both. Cached like the rows of a filter: a device recognises a mask that it was
  // given before, and compares one that each call makes anew by its content, O(words). Cost: a copy
  // of a mask where neither is null and the result is not cached.
  NamedRows Intersection(const NamedRows& a, const NamedRows& b) const;

  // The fields that the rows of a filter have. Kept, like the rows of a filter.
  // Errors: work's.
  absl::StatusOr<PayloadView> FieldsOf(const NamedRows& rows, base::LongWork& work) const;

  // A field to group rows by.
  //   fields  that exist for the caller
  // Errors: kInvalidArgument when no row has it, or when rows are not grouped by its type; the
  //         message lists the fields by which they are.
  absl::StatusOr<GroupField> FindGroups(std::string_view field, const PayloadView& fields) const;

  // The rows that are in a group of a field: a list may be empty. Cached like the rows of a filter.
  // REQUIRES: FindGroups finds the field.
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
  // Of the payload index and the cached masks.
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
