#include "data/payload_table.h"

#include <algorithm>
#include <cassert>

#include "data/payload_encoding.h"

namespace simile::data {
namespace {

// The overhead of a protobuf map entry beyond the bytes of key and value: the tags and lengths of
// the entry and the key.
constexpr std::uint64_t kMapEntryOverheadBytes = 12;

}  // namespace

std::optional<std::uint32_t> PayloadTable::FieldNumber(std::string_view name) const {
  const auto found = std::lower_bound(
      fields_.begin(), fields_.end(), name,
      [](const FieldInfo& field, std::string_view wanted) { return field.name < wanted; });
  if (found == fields_.end() || found->name != name) return std::nullopt;
  return static_cast<std::uint32_t>(found - fields_.begin());
}

std::span<const std::uint8_t> PayloadTable::EncodedRow(Row row) const {
  assert(row < starts_.size());
  const std::uint64_t start = starts_[row];
  const std::vector<std::uint8_t>& chunk = chunks_[start >> 32];
  return std::span(chunk).subspan(start & 0xFFFF'FFFFU);
}

PayloadObject PayloadTable::Read(Row row) const {
  PayloadCursor cursor(EncodedRow(row));
  PayloadObject object(cursor.ReadVarint());
  for (auto& [name, value] : object) {
    name = fields_[number_of_stored_[cursor.ReadVarint()]].name;
    value = cursor.ReadValue();
  }
  return object;
}

PayloadObject PayloadTable::Read(Row row, std::span<const std::uint32_t> field_numbers) const {
  assert(std::is_sorted(field_numbers.begin(), field_numbers.end()));
  PayloadCursor cursor(EncodedRow(row));
  PayloadObject object;
  for (std::uint64_t left = cursor.ReadVarint(); left > 0; --left) {
    const std::uint32_t number = number_of_stored_[cursor.ReadVarint()];
    if (std::binary_search(field_numbers.begin(), field_numbers.end(), number)) {
      object.emplace_back(fields_[number].name, cursor.ReadValue());
    } else {
      cursor.SkipValue();
    }
  }
  return object;
}

PayloadValue PayloadTable::ReadField(Row row, std::uint32_t field_number) const {
  PayloadCursor cursor(EncodedRow(row));
  for (std::uint64_t left = cursor.ReadVarint(); left > 0; --left) {
    if (number_of_stored_[cursor.ReadVarint()] == field_number) return cursor.ReadValue();
    cursor.SkipValue();
  }
  return {};
}

void PayloadTable::VisitFields(
    Row row, const std::function<void(std::uint32_t, const PayloadValue&)>& visit) const {
  PayloadCursor cursor(EncodedRow(row));
  for (std::uint64_t left = cursor.ReadVarint(); left > 0; --left) {
    const std::uint32_t number = number_of_stored_[cursor.ReadVarint()];
    visit(number, cursor.ReadValue());
  }
}

std::uint64_t PayloadTable::RowBytes(Row row) const {
  PayloadCursor cursor(EncodedRow(row));
  std::uint64_t bytes = 0;
  for (std::uint64_t left = cursor.ReadVarint(); left > 0; --left) {
    const FieldInfo& field = fields_[number_of_stored_[cursor.ReadVarint()]];
    bytes += kMapEntryOverheadBytes + field.name.size();
    bytes += cursor.SkipValue();
  }
  return bytes;
}

std::uint64_t PayloadTable::bytes() const {
  std::uint64_t bytes = starts_.capacity() * sizeof(std::uint64_t) +
                        number_of_stored_.capacity() * sizeof(std::uint32_t) +
                        fields_.capacity() * sizeof(FieldInfo) +
                        chunks_.capacity() * sizeof(std::vector<std::uint8_t>);
  for (const auto& chunk : chunks_) bytes += chunk.capacity();
  return bytes;
}

std::uint64_t PayloadTable::packed_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& chunk : chunks_) bytes += chunk.size();
  return bytes;
}

std::uint64_t PayloadTable::BytesFor(std::uint64_t row_count, std::uint64_t packed_bytes,
                                     std::size_t field_count) {
  // A row that does not fit into the rest of a chunk begins the next: on average half a row is
  // lost.
  const std::uint64_t chunk_count = packed_bytes / kChunkBytes;
  const std::uint64_t row_bytes = row_count == 0 ? 0 : packed_bytes / row_count;
  return row_count * sizeof(std::uint64_t) + packed_bytes + chunk_count * row_bytes / 2 +
         (chunk_count + 1) * sizeof(std::vector<std::uint8_t>) +
         field_count * (sizeof(FieldInfo) + sizeof(std::uint32_t));
}

}  // namespace simile::data
