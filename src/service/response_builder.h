#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <absl/status/status.h>
#include <google/protobuf/repeated_ptr_field.h>

#include "engine/snapshots/snapshot.h"
#include "observe/receipt.h"
#include "service/payload_selection.h"
#include "simile/hits.h"
#include "simile/limits.h"

namespace simile::v1 {
class Hit;
class Item;
class Receipt;
class Value;
}  // namespace simile::v1

namespace simile::service {

// What every row of an answer carries besides its id.
struct RowShape {
  PayloadSelection payload;
  bool with_vectors = false;
};

// Turns rows of a snapshot into messages. Borrows the snapshot and the shape for its life.
class ResponseBuilder {
 public:
  ResponseBuilder(const engine::Snapshot& snapshot, const RowShape& shape)
      : snapshot_(snapshot), shape_(shape) {}

  // Adds the hits, best first.
  //   offset  how many better hits are left out; the first rank is offset + 1
  void FillHits(std::span<const Hit> hits, std::uint32_t offset,
                google::protobuf::RepeatedPtrField<v1::Hit>& messages) const;
  void FillItem(Row row, v1::Item& message) const;

  // Whether an answer of these rows fits into bytes_max, before any of it is built.
  //   remedy       what the caller can do, for the message: "lower k, ..."
  //   other_bytes  of the answer besides its rows
  // Errors: kInvalidArgument with the bytes needed and allowed.
  // Cost: one walk over each row's payload; near or above the maximum, also a decode of each row.
  absl::Status CheckReplySize(std::span<const Row> rows, std::uint64_t bytes_max,
                              std::string_view remedy, std::uint64_t other_bytes = 0) const;

 private:
  std::uint64_t UpperBoundBytes(Row row) const;
  std::uint64_t ExactBytes(Row row) const;

  const engine::Snapshot& snapshot_;
  const RowShape& shape_;
};

// No request may raise its maximum further, so larger replies are not counted to their end.
inline constexpr std::uint64_t kReplyBytesCountedMax = Limits{}.reply_bytes_max;

void FillValue(PayloadValue&& value, v1::Value& message);

void FillReceipt(const observe::Receipt& receipt, std::uint64_t total_us,
                 std::string_view request_id, v1::Receipt& message);

}  // namespace simile::service
