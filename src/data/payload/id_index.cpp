#include "data/payload/id_index.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/nearest_name.h"
#include "data/payload/text_slots.h"

namespace simile::data {
namespace {

// The estimated cost of a search for the nearest id.
constexpr std::uint64_t kIdNs = 10;
constexpr std::uint64_t kCellNs = 2;

constexpr std::size_t kDistancesSearchedMax = 200'000;
constexpr std::size_t kContinuationsSearchedMax = 2'000'000;

std::string_view IdAt(const std::vector<char>& bytes, const std::vector<std::uint64_t>& ends,
                      std::size_t row) {
  const std::uint64_t begin = row == 0 ? 0 : ends[row - 1];
  return {bytes.data() + begin, ends[row] - begin};
}

// The slot that holds the id's row, or the empty one where it belongs.
std::size_t FindIdSlot(std::string_view id, const std::vector<char>& bytes,
                       const std::vector<std::uint64_t>& ends,
                       const std::vector<std::uint32_t>& slots) {
  return FindSlot(id, slots, [&](std::size_t row) { return IdAt(bytes, ends, row); });
}

// The row that a canonical decimal number (no sign, no leading zeros) names, or nothing.
std::optional<Row> ParseRowNumber(std::string_view id, std::size_t row_count) {
  if (id.empty() || (id.size() > 1 && id.front() == '0')) return std::nullopt;
  std::uint64_t row = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), row);
  if (error != std::errc() || end != id.data() + id.size() || row >= row_count) return std::nullopt;
  return static_cast<Row>(row);
}

// Parses a canonical decimal integer: no leading zero, no plus sign, no -0.
std::optional<std::int64_t> ParseInteger(std::string_view id) {
  const std::string_view digits = id.starts_with('-') ? id.substr(1) : id;
  if (digits.empty() || (digits.front() == '0' && id.size() > 1)) return std::nullopt;
  std::int64_t integer = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), integer);
  if (error != std::errc() || end != id.data() + id.size()) return std::nullopt;
  return integer;
}

}  // namespace

IdIndex IdIndex::OfRowNumbers(std::size_t row_count) {
  IdIndex index;
  index.size_ = row_count;
  index.row_numbers_ = true;
  index.are_integers_ = row_count > 0;
  return index;
}

IdIndex::Builder::Builder(std::size_t expected_count)
    : slots_(SlotsFor(expected_count), kEmptySlot) {
  ends_.reserve(expected_count);
}

absl::Status IdIndex::Builder::Add(std::string_view id) {
  const std::size_t slot = SlotFor(id);
  if (slots_[slot] != kEmptySlot) {
    return absl::AlreadyExistsError(
        fmt::format("id {} is also that of row {}", base::Quoted(id), slots_[slot]));
  }
  AddAt(slot, id);
  return absl::OkStatus();
}

Row IdIndex::Builder::FindOrAdd(std::string_view id) {
  const std::size_t slot = SlotFor(id);
  if (slots_[slot] == kEmptySlot) AddAt(slot, id);
  return slots_[slot];
}

std::size_t IdIndex::Builder::SlotFor(std::string_view id) {
  MakeSlotFor(ends_.size(), slots_, [this](std::size_t row) { return IdAt(bytes_, ends_, row); });
  return FindIdSlot(id, bytes_, ends_, slots_);
}

void IdIndex::Builder::AddAt(std::size_t slot, std::string_view id) {
  assert(ends_.size() < kEmptySlot);
  are_integers_ = are_integers_ && ParseInteger(id).has_value();
  // Grows by a quarter, not by doubling, because the arena is a large part of resident memory.
  if (bytes_.capacity() - bytes_.size() < id.size()) {
    bytes_.reserve(bytes_.size() + id.size() + bytes_.size() / 4 + 4096);
  }
  bytes_.insert(bytes_.end(), id.begin(), id.end());
  slots_[slot] = static_cast<std::uint32_t>(ends_.size());
  ends_.push_back(bytes_.size());
}

IdIndex IdIndex::Builder::Build() && {
  IdIndex index;
  index.size_ = ends_.size();
  index.are_integers_ = are_integers_ && !ends_.empty();
  index.bytes_ = std::move(bytes_);
  index.ends_ = std::move(ends_);
  index.slots_ = std::move(slots_);
  index.bytes_.shrink_to_fit();
  return index;
}

std::string IdIndex::Id(Row row) const {
  Digits digits;
  return std::string(Id(row, digits));
}

std::string_view IdIndex::Id(Row row, Digits& digits) const {
  assert(row < size_);
  if (!row_numbers_) return IdAt(bytes_, ends_, row);
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), row);
  return {digits.data(), static_cast<std::size_t>(written.ptr - digits.data())};
}

std::int64_t IdIndex::Integer(Row row) const {
  assert(are_integers_ && row < size_);
  return row_numbers_ ? std::int64_t{row} : ParseInteger(IdAt(bytes_, ends_, row)).value_or(0);
}

std::optional<Row> IdIndex::Find(std::string_view id) const {
  if (row_numbers_) return ParseRowNumber(id, size_);
  if (slots_.empty()) return std::nullopt;
  const std::uint32_t row = slots_[FindIdSlot(id, bytes_, ends_, slots_)];
  return row == kEmptySlot ? std::nullopt : std::optional<Row>(row);
}

absl::StatusOr<std::string> IdIndex::Nearest(std::string_view id, base::LongWork& work) const {
  if (row_numbers_ || size_ > kContinuationsSearchedMax) return std::string();
  base::NearestSearch search(id);
  const bool measured = size_ <= kDistancesSearchedMax;
  for (std::size_t row = 0; row < size_; ++row) {
    const std::string_view known = IdAt(bytes_, ends_, row);
    measured ? search.Consider(known) : search.ConsiderContinuation(known);
    // The distance table has a row for each byte of `id`, and columns for a third of `known`.
    const std::uint64_t cells = measured ? id.size() * known.size() / 3 : 0;
    if (absl::Status status = work.Did(kIdNs + cells * kCellNs); !status.ok()) return status;
  }
  return std::string(search.found());
}

std::uint64_t IdIndex::bytes() const {
  return bytes_.capacity() + ends_.capacity() * sizeof(std::uint64_t) +
         slots_.capacity() * sizeof(std::uint32_t);
}

std::uint64_t IdIndex::BytesFor(std::uint64_t count, std::uint64_t id_bytes) {
  return id_bytes + count * sizeof(std::uint64_t) + SlotsFor(count) * sizeof(std::uint32_t);
}

}  // namespace simile::data
