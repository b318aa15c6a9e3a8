#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "simile/limits.h"
#include "simile/payload.h"

namespace simile::data {

// Checks an id: not empty, at most limits.id_bytes_max bytes, no control characters.
// REQUIRES: valid UTF-8.
// Errors: kInvalidArgument, "is empty; ..."; the caller adds the place.
absl::Status CheckId(std::string_view id, const Limits& limits);

// The id in a JSON value: a string, or an integer's decimal digits ("12" for 12 and for 12.0).
// Errors: as CheckId.
absl::StatusOr<std::string> IdFrom(const PayloadValue& value, const Limits& limits);

// Finds the field of a payload's ids in its first line: `id`, else `media_id`, else `item_id`.
// Empty when the line has no value in any of these fields; then ids are row numbers.
std::string FindIdField(const PayloadObject& first_line);

// Whether people give this name to a field of ids: `_id`, `movieId`, `product_id`, `asin`.
bool IsNamedAsId(std::string_view name);

// Looks, in a payload whose ids are row numbers, for the field that its owner may have meant.
class MissedIdField {
 public:
  // REQUIRES: lines are added in their order.
  void Add(const PayloadObject& line);
  // One sentence for each field that the owner may have meant: that all lines but the first have an
  // `id`, or that `movieId` is distinct in every row, and how to make it the id. Empty for no
  // field. Cost: a sort of the values.
  std::vector<std::string> Notes(std::string_view display_name) &&;

 private:
  // A field named as an id, while every line has a string or an integer there.
  struct Candidate {
    std::string name;
    std::vector<std::uint64_t> hashes;  // of its values
  };
  // A usual field of ids that line 1 does not have.
  struct Late {
    std::string_view name;
    std::uint64_t lines = 0;
  };

  void FindCandidates(const PayloadObject& first_line);

  std::uint64_t lines_ = 0;
  std::vector<Candidate> candidates_;
  std::vector<Late> late_;
};

}  // namespace simile::data
