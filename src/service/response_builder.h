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

namespace simile::v1 {
class Hit;
class Item;
class Receipt;
class PayloadValue;
}  // namespace simile::v1

namespace simile::service {

// What every row of an answer carries besides its id.
struct RowShape {
  PayloadSelection payload;
  bool with_vectors = false;
  bool with_rows = false;
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

  // Refuses an answer of which these rows alone are too large, before any of it is built. The whole
  // answer is measured when it is built (Call::SetReplyLimit).
  //   bytes_max    that the call allows
  //   counted_max  rows are not counted beyond this: limits.reply_bytes_max
  //   remedy       what the caller can do, for the message: "lower k, ..."
  //   other_bytes  that the answer has at least besides its rows
  // Errors: REPLY_TOO_LARGE.
  // Cost: one walk over each row's payload; near or above the maximum, also a decode of each row.
  absl::Status CheckRowBytes(std::span<const Row> rows, std::uint64_t bytes_max,
                             std::uint64_t counted_max, std::string_view remedy,
                             std::uint64_t other_bytes = 0) const;

 private:
  std::uint64_t UpperBoundBytes(Row row) const;
  std::uint64_t LowerBoundBytes(Row row) const;

  const engine::Snapshot& snapshot_;
  const RowShape& shape_;
};

void FillValue(PayloadValue&& value, v1::PayloadValue& message);

// What every receipt has.
void FillBriefReceipt(const observe::Receipt& receipt, const engine::Snapshot& snapshot,
                      std::uint64_t total_us, v1::Receipt& message);
// All the rest.
void FillReceiptDetail(const observe::Receipt& receipt, const engine::Snapshot& snapshot,
                       std::string_view request_id, v1::Receipt& message);

}  // namespace simile::service
