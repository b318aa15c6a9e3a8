#include "data/payload_table.h"

#include <algorithm>
#include <cassert>

namespace simile::data {
namespace {

// The member of an object, `address.city`; monostate where an object lacks it.
PayloadValue ReadMember(std::span<const std::uint8_t> value, std::string_view path) {
  while (true) {
    const std::size_t end = path.find('.');
    const std::string_view name = path.substr(0, end);
    PayloadCursor members = ReadMembers(value);
    EncodedMember member;
    do {
      if (members.at_end()) return {};
      member = members.ReadMember();
    } while (member.name != name);
    value = member.value;
    if (end == std::string_view::npos) return DecodeValue(value);
    path.remove_prefix(end + 1);
  }
}

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
  const std::size_t chunk_index = ChunkIndex(row);
  const std::vector<std::uint8_t>& chunk = chunks_[chunk_index];
  const std::size_t begin = ChunkOffset(row);
  const Row next = row + 1;
  const bool last_of_chunk = next == starts_.size() || ChunkIndex(next) != chunk_index;
  return std::span(chunk).subspan(begin,
                                  (last_of_chunk ? chunk.size() : ChunkOffset(next)) - begin);
}

PayloadObject PayloadTable::Read(Row row) const {
  PayloadObject object;
  VisitEncoded(row, [&](std::uint32_t number, std::span<const std::uint8_t> value) {
    object.emplace_back(fields_[number].name, DecodeValue(value));
  });
  return object;
}

PayloadValue PayloadTable::ReadField(Row row, std::uint32_t field_number) const {
  const std::uint32_t row_field = row_fields_[field_number];
  PayloadCursor cursor(EncodedRow(row));
  while (!cursor.at_end()) {
    const std::uint32_t number = number_of_stored_[cursor.ReadVarint()];
    const std::span<const std::uint8_t> value = cursor.ReadValueBytes();
    if (number != row_field) continue;
    if (number == field_number) return DecodeValue(value);
    const std::string_view name = fields_[field_number].name;
    return ReadMember(value, name.substr(fields_[row_field].name.size() + 1));
  }
  return {};
}

void PayloadTable::VisitFields(
    Row row, const std::function<void(std::uint32_t, const PayloadValue&)>& visit) const {
  VisitEncodedFields(row, [&](std::uint32_t number, std::span<const std::uint8_t> value) {
    visit(number, DecodeValue(value));
  });
}

std::uint64_t PayloadTable::bytes() const {
  std::uint64_t bytes = (starts_.capacity() + block_chunks_.capacity()) * sizeof(std::uint32_t) +
                        number_of_stored_.capacity() * sizeof(std::uint32_t) +
                        fields_.capacity() * kFieldBytes +
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
  const std::uint64_t block_count = (row_count + kBlockRows - 1) / kBlockRows;
  return (row_count + block_count) * sizeof(std::uint32_t) + packed_bytes +
         chunk_count * row_bytes / 2 + (chunk_count + 1) * sizeof(std::vector<std::uint8_t>) +
         field_count * (kFieldBytes + sizeof(std::uint32_t));
}

}  // namespace simile::data
