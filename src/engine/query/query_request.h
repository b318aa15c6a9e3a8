#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <absl/status/status.h>

#include "base/error_detail.h"
#include "engine/search/resolved_query.h"
#include "simile/row_mask.h"

namespace simile::engine {

// A request's vector as it was received: little-endian fp32 or fp16, at any alignment. Borrows the
// bytes.
class VectorBytes {
 public:
  enum class Format : std::uint8_t { kF32, kF16 };

  VectorBytes() = default;
  // REQUIRES: bytes.size() is a multiple of the number's size.
  VectorBytes(Format format, std::string_view bytes) : format_(format), bytes_(bytes) {}
  // Implicit, because a span of floats is a vector in this format.
  VectorBytes(std::span<const float> values)  // NOLINT(google-explicit-constructor)
      : bytes_(reinterpret_cast<const char*>(values.data()), values.size_bytes()) {}

  // How many numbers.
  std::size_t size() const { return bytes_.size() / (format_ == Format::kF32 ? 4 : 2); }

  // Writes the numbers as fp32, exactly. Returns the sum of their squares (data::ProductSum).
  //   out  [size()]
  // REQUIRES: size() > 0.
  double CopyTo(float* out) const;

 private:
  Format format_ = Format::kF32;
  std::string_view bytes_;
};

// A query's vector, sent with the request.
struct ByVector {
  VectorBytes values;                 // borrowed from the request
  bool as_stored = false;             // searched bit for bit, not brought to unit length
  std::string_view field = "vector";  // its name in the request, for errors; static storage
};
struct ByItem {
  std::string id;                 // the item's own row is left out of the answer
  std::string_view field = "id";  // as ByVector::field
};
// An item of another collection.
struct ByOtherItem {
  std::string collection;
  std::string id;
};
using VectorOrItem = std::variant<ByVector, ByItem, ByOtherItem>;
struct ByUser {
  std::string id;
  bool exclude_seen = false;           // leave out the rows the user has interacted with
  std::string_view field = "user_id";  // as ByVector::field; empty: the query is the id and no more
};

// An item or vector that rows should be similar to (positive) or dissimilar to (negative).
struct Example {
  VectorOrItem target;
  float weight = 1;  // multiplies its similarities; positive and finite
};

// How the similarities to examples become one score: formulas in docs/design/recommendation.md.
enum class Strategy : std::uint8_t { kAverageVector, kBestScore, kSumScores };

struct ByExamples {
  std::vector<Example> positive;
  std::vector<Example> negative;
  Strategy strategy = Strategy::kAverageVector;
};

// A target and a user's profile, added: (1 - user_weight) * target + user_weight * profile, both at
// unit length for cosine.
struct ByBlend {
  VectorOrItem target;
  ByUser user;
  float user_weight = 0.5F;  // 0..1
};

// The answer for a user without a profile: the rows with the greatest values of a field.
struct ColdStart {
  enum class Order : std::uint8_t { kNewest, kMostPopular };
  Order order = Order::kNewest;
  // A field of integers, numbers or times. Empty: for kNewest the only time field, or else `year`;
  // for kMostPopular the number of users who have seen the row.
  std::string_view field;
};

struct GroupRequest {
  std::string_view field;
  std::uint32_t group_size = 1;
};

// A validated query of a request, without protobuf. Its views are of the request, whose options'
// texts all queries of a call may share.
struct QueryRequest {
  std::variant<ByVector, ByItem, ByOtherItem, ByUser, ByExamples, ByBlend> target;
  std::uint32_t k = 10;
  std::uint32_t offset = 0;
  float score_threshold = -std::numeric_limits<float>::infinity();
  // Rows never returned. An id the collection does not have excludes nothing: callers keep long
  // lists of what a user has dismissed, and items disappear from collections.
  std::vector<std::string> exclude_ids;
  std::string_view filter;         // rows that may be returned; empty lets every row pass
  bool filter_is_default = false;  // of the call's options, for errors
  std::optional<engine::Diversity> diversity;  // one of these at most
  std::optional<GroupRequest> group_by;
  bool group_by_is_default = false;     // of the call's options, for errors
  std::optional<ColdStart> cold_start;  // of ByUser
};

// Where in a request an error is: a query, or a part of a query. Formatted only when there is an
// error, so a valid call formats nothing. Borrows its names.
struct Place {
  std::string_view list = "queries";  // the request's repeated field
  std::size_t index = 0;
  bool alone = true;      // messages do not name a call's only query
  std::string_view part;  // of the query: "blend", "examples.positive"; empty for the whole query
  int part_index = -1;    // in a repeated part; -1 for none
};

// An error of the field `leaf` of a place; of the place itself when `leaf` is empty.
//   field    "queries[3].examples.positive[0].id"
//   message  "queries[3]: examples.positive[0]: what"
absl::Status ErrorAt(const Place& place, std::string_view leaf, base::ErrorReason reason,
                     std::string_view what);
// The same error as one of the field `leaf` of a place.
absl::Status AtPlace(const Place& place, std::string_view leaf, const absl::Status& error);

// What a call learns about one query in addition to its answer.
struct QueryReport {
  absl::Status status;             // why it cannot be answered
  std::vector<std::string> notes;  // options without effect, one sentence each
  std::uint32_t seen_count = 0;    // for a query by a user: existing items that the user has seen
  // With options.partial: why this page of the query cannot be answered. An error of every page is
  // in `status`.
  absl::Status past_reach = absl::OkStatus();
};

// What a call learns about its queries and its options.
struct CallReport {
  std::vector<QueryReport> queries;  // [queries of the request]
  std::vector<std::string> notes;    // options of the call without effect
  // The rows that a query without a filter and without exclusions may return; null for all.
  std::shared_ptr<const RowMask> unfiltered = nullptr;
};

}  // namespace simile::engine
