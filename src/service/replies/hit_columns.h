#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "data/payload/payload_encoding.h"
#include "data/payload/payload_table.h"
#include "engine/snapshots/snapshot.h"
#include "service/replies/row_encoding.h"
#include "service/replies/wire_writer.h"

namespace simile::service {

struct ResultPage;

// Texts one after the other, as v1::TextColumn has them.
class TextColumn {
 public:
  void Add(std::string_view text) {
    utf8_.append(text);
    offsets_.push_back(static_cast<std::uint32_t>(utf8_.size()));
  }
  // Adds a value and keeps equal texts once.
  //   text  must outlive the column
  void AddShared(std::string_view text);

  std::uint64_t bytes() const {
    return utf8_.size() + (offsets_.size() + places_.size()) * sizeof(std::uint32_t);
  }
  template <class Sink>
  void Encode(Sink& out) const;

 private:
  std::string utf8_;
  std::vector<std::uint32_t> offsets_ = {0};
  std::vector<std::uint32_t> places_;  // of shared values
  absl::flat_hash_map<std::string_view, std::uint32_t> shared_;
};

// One payload field of the items, as v1::PayloadColumn has it.
class PayloadColumn {
 public:
  //   field  borrowed
  explicit PayloadColumn(const data::FieldInfo& field);

  // Adds an item's value. Items skipped since the last call lack the field.
  //   encoded  of the snapshot: borrowed
  void Add(std::size_t item, std::span<const std::uint8_t> encoded);
  // Marks the items below item_count that have no state yet as without the field.
  void FillTo(std::size_t item_count);

  std::uint64_t bytes() const;
  template <class Sink>
  void Encode(Sink& out) const;

 private:
  // The values of PayloadColumn.states.
  enum State : std::uint8_t { kAbsent = 0, kInValues = 1, kNull = 2, kInOthers = 3 };

  bool IsElement(const data::EncodedValue& value) const;
  bool IsOfType(const data::EncodedValue& value) const;
  void AddValue(const data::EncodedValue& value);
  void AddNothing();
  void EndItem(State state);

  const data::FieldInfo& field_;
  const data::FieldType element_type_;
  const bool is_list_;
  std::vector<std::uint8_t> states_;
  bool all_in_values_ = true;
  std::vector<std::uint32_t> list_offsets_ = {0};
  std::uint32_t value_count_ = 0;
  // The vector of the field's type has the values; the others are empty.
  std::vector<std::int64_t> integers_;
  std::vector<double> numbers_;
  std::vector<std::uint8_t> booleans_;
  TextColumn texts_;
  std::vector<std::span<const std::uint8_t>> others_;
  std::uint64_t other_bytes_ = 0;
};

// The hits of a call as v1::HitColumns. Hidden rows never change the form of a column: only callers
// who see all rows get integer ids, and a payload column has the type that DescribeFields reports.
// Borrows the snapshot and the shape.
class HitColumns {
 public:
  //   sees_all_rows  whether the caller sees all rows; if not, ids are texts
  //   bytes_max      below 4 GiB
  // Returns null when the columns exceed bytes_max; building stops there.
  // Cost: O(hits), and one walk over the payload of each item.
  static std::unique_ptr<const HitColumns> Create(const engine::Snapshot& snapshot,
                                                  const RowShape& shape, bool sees_all_rows,
                                                  std::span<const ResultPage> pages,
                                                  std::uint64_t bytes_max);

  void Encode(ByteCounter& out) const;
  void Encode(WireWriter& out) const;

 private:
  HitColumns(const engine::Snapshot& snapshot, const RowShape& shape, bool sees_all_rows,
             std::uint64_t bytes_max);

  bool is_full() const { return bytes_ > bytes_max_; }
  void Reserve(std::size_t hit_count);
  void AddPage(const ResultPage& page);
  void AddHits(std::span<const Hit> hits);
  // The place of the row among the items; adds the row if it is new.
  std::uint32_t FindOrAddItem(Row row);
  void AddItem(Row row);
  void AddPayload(std::size_t item, Row row);
  PayloadColumn& FindOrAddColumn(std::uint32_t field_number);
  template <class Sink>
  void EncodeTo(Sink& out) const;

  const engine::Snapshot& snapshot_;
  const RowShape& shape_;
  const std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;  // of the columns so far
  const bool integer_ids_;
  std::vector<std::uint32_t> offsets_ = {0};
  std::vector<std::uint32_t> first_ranks_;
  std::vector<float> scores_;
  std::vector<std::uint32_t> items_;
  bool has_groups_ = false;
  std::vector<std::uint32_t> group_offsets_ = {0};
  std::vector<std::uint32_t> group_sizes_;
  TextColumn group_keywords_;
  absl::flat_hash_map<Row, std::uint32_t> item_of_row_;
  std::vector<Row> rows_;  // [items]
  std::vector<std::int64_t> ids_;
  TextColumn text_ids_;
  std::vector<std::optional<PayloadColumn>> payload_;  // [fields] set for fields of the answer
  std::vector<std::uint32_t> payload_fields_;          // their numbers
};

}  // namespace simile::service
