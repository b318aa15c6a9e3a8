#pragma once

#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include <absl/status/status.h>

#include "base/error_detail.h"
#include "base/long_work.h"
#include "engine/query/existing_items.h"
#include "engine/query/other_items.h"
#include "engine/query/query_request.h"
#include "engine/snapshots/snapshot.h"

namespace simile::engine {

// Turns the target of a query into vectors that a snapshot can be searched with: at unit length for
// cosine, as given for dot and when marked as stored. Borrows its arguments.
class VectorBuilder {
 public:
  //   may_offer  whether errors offer the nearest id to an unknown one
  VectorBuilder(const engine::Snapshot& snapshot, const ExistingItems& items, OtherItems& others,
                bool may_offer, base::LongWork& work)
      : snapshot_(snapshot), items_(items), others_(others), may_offer_(may_offer), work_(work) {}

  // Each writes one padded row and may add rows to exclude.
  // Errors: DIMENSION_MISMATCH; INVALID_FIELD for a number that is not finite, a length outside
  //         2^-60..2^60 (0 is within for dot), one of a vector marked as stored that is not 1, or
  //         an item that is not searchable; ITEM_NOT_FOUND and USER_NOT_FOUND; OtherItems::Of's;
  //         work's.
  absl::Status Build(const Place& place, const ByVector& target, float* row,
                     std::vector<Row>& excluded) const;
  absl::Status Build(const Place& place, const ByItem& target, float* row,
                     std::vector<Row>& excluded) const;
  absl::Status Build(const Place& place, const ByOtherItem& target, float* row,
                     std::vector<Row>& excluded) const;
  absl::Status Build(const Place& place, const VectorOrItem& target, float* row,
                     std::vector<Row>& excluded) const;
  absl::Status Build(const Place& place, const ByUser& target, float* row,
                     std::vector<Row>& excluded) const;

  std::size_t dim() const { return snapshot_.dim(); }

  // Brings a vector to the length it is searched with, in double, and rounds it to fp32.
  //   name    what messages call the vector: "the blended vector"
  absl::Status Finish(const Place& place, std::string_view name, std::span<const double> values,
                      float* row) const;

 private:
  // Writes the vector of an item. Returns its row.
  //   field  of the request, for errors
  absl::StatusOr<Row> WriteItem(const Place& place, std::string_view field,
                                const engine::Snapshot& snapshot, const ExistingItems& items,
                                std::string_view id, float* row) const;
  // ITEM_NOT_FOUND or USER_NOT_FOUND.
  //   text  of the message, or the error of what should find it
  static absl::Status NotFound(const Place& place, std::string_view field, base::ErrorReason reason,
                               const absl::StatusOr<std::string>& text);
  // The length of a vector.
  //   field    of the request, for errors
  //   squares  sum of the squares; finite exactly when every number is
  template <class Number>
  absl::StatusOr<double> CheckedLength(const Place& place, std::string_view field,
                                       std::string_view name, double squares,
                                       std::span<const Number> values) const;
  absl::Status CheckStored(const Place& place, const ByVector& target, double length) const;
  bool is_cosine() const { return snapshot_.dataset->metric == Metric::kCosine; }

  const engine::Snapshot& snapshot_;
  const ExistingItems& items_;
  OtherItems& others_;
  const bool may_offer_;
  base::LongWork& work_;
};

// Build a query from several vectors. Arithmetic is in double, rounded to fp32 once.
//   query     its place
//   excluded  the rows of the items named are added
// Errors: VectorBuilder's, with the example's place; INVALID_FIELD when the vectors cancel each
//         other out.

// Builds one padded row: twice the weighted mean of the positive examples minus the weighted mean
// of the negative examples; without negatives the mean of the positives.
// REQUIRES: at least one positive example.
absl::Status BuildAverage(const VectorBuilder& builder, const Place& query,
                          const ByExamples& examples, float* row, std::vector<Row>& excluded);

// Builds one padded row.
absl::Status BuildBlend(const VectorBuilder& builder, const Place& query, const ByBlend& blend,
                        float* row, std::vector<Row>& excluded);

// Builds a padded row for every example, the positive examples first.
// Errors: also INVALID_FIELD when weights and lengths are so large that sums could overflow.
absl::Status BuildExamples(const VectorBuilder& builder, const Place& query,
                           const ByExamples& examples, float* rows, std::vector<Row>& excluded);

}  // namespace simile::engine
