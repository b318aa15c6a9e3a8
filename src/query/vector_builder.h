#pragma once

#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include <absl/status/status.h>

#include "engine/snapshots/snapshot.h"
#include "query/query_request.h"

namespace simile::query {

// Turns what a query names into vectors that a snapshot can be searched with: brought to unit
// length for cosine, as given for dot. Borrows the snapshot.
class VectorBuilder {
 public:
  explicit VectorBuilder(const engine::Snapshot& snapshot) : snapshot_(snapshot) {}

  // Each writes one padded row and may add rows to exclude.
  //   place  what messages call the target: "queries[3]: ", "" or "examples.positive[0]: "
  // Errors: kInvalidArgument for a vector of another dimension, a number that is not finite or a
  //         length outside 2^-60..2^60; kNotFound naming the id and the nearest known one.
  absl::Status Build(std::string_view place, const ByVector& target, float* row,
                     std::vector<Row>& excluded) const;
  absl::Status Build(std::string_view place, const ByItem& target, float* row,
                     std::vector<Row>& excluded) const;
  absl::Status Build(std::string_view place, const std::variant<ByVector, ByItem>& target,
                     float* row, std::vector<Row>& excluded) const;
  // Also kFailedPrecondition when the collection has no profiles.
  absl::Status Build(std::string_view place, const ByUser& target, float* row,
                     std::vector<Row>& excluded) const;

  std::size_t dim() const { return snapshot_.dim(); }

  // Brings a vector to the length it is searched with, in double, and rounds it to fp32.
  //   what    names the vector when it is too short or too long: "vector"
  //   Number  float or double
  template <class Number>
  absl::Status Finish(std::string_view place, std::string_view what, std::span<const Number> values,
                      float* row) const;

 private:
  const engine::Snapshot& snapshot_;
};

}  // namespace simile::query
