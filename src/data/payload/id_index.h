#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "base/long_work.h"
#include "simile/matrix_view.h"

namespace simile::data {

// A list of distinct ids and its inverse. Ids live in one arena, and the inverse is an open table
// of row numbers. So n ids of average length b cost about n * (b + 8 + 6) bytes, without an
// allocation for each id. When ids are the row numbers themselves nothing is stored. Immutable;
// safe to share.
class IdIndex {
 public:
  // Ids that are the decimal row numbers 0 .. row_count-1.
  static IdIndex OfRowNumbers(std::size_t row_count);

  // Collects ids one by one.
  class Builder {
   public:
    explicit Builder(std::size_t expected_count);
    // Errors: kAlreadyExists with the row that has this id already, without file and row, which the
    // caller adds: `id "x" is also that of row 3`.
    // REQUIRES: the id is valid UTF-8 and within the limit: the reader has checked.
    absl::Status Add(std::string_view id);
    // The row of an id, which is added unless it is known. REQUIRES: as Add.
    Row FindOrAdd(std::string_view id);
    std::size_t size() const { return ends_.size(); }
    IdIndex Build() &&;

   private:
    // The slot that holds the id's row, or an empty one for it.
    std::size_t SlotFor(std::string_view id);
    void AddAt(std::size_t slot, std::string_view id);

    std::vector<char> bytes_;
    std::vector<std::uint64_t> ends_;
    std::vector<std::uint32_t> slots_;
    bool are_integers_ = true;  // every id added so far is an integer
  };

  IdIndex() = default;

  std::size_t size() const { return size_; }
  // The id of a row, by value because row-number ids are not stored.
  // REQUIRES: row < size().
  std::string Id(Row row) const;
  // The same without a copy: a view of the index, or of `digits` when ids are row numbers.
  using Digits = std::array<char, std::numeric_limits<Row>::digits10 + 1>;
  std::string_view Id(Row row, Digits& digits) const;
  // True if every id is a canonical decimal integer of 64 bits. False without ids.
  bool are_integers() const { return are_integers_; }
  // The id as a number. REQUIRES: are_integers(), row < size().
  std::int64_t Integer(Row row) const;
  // The row of an id, or nothing. O(1).
  std::optional<Row> Find(std::string_view id) const;
  // The known id nearest to a mistyped one, as NearestSearch finds it in row order. Empty when no
  // id is near, or when ids are row numbers. To keep errors cheap, more than 200,000 ids are
  // searched only for continuations of the mistyped id, and more than 2,000,000 not at all.
  // Errors: those of `work`.
  absl::StatusOr<std::string> Nearest(std::string_view id, base::LongWork& work) const;
  std::uint64_t bytes() const;
  std::uint64_t id_bytes() const { return bytes_.size(); }  // of the stored ids themselves
  // The bytes() of `count` stored ids, which have `id_bytes` together.
  static std::uint64_t BytesFor(std::uint64_t count, std::uint64_t id_bytes);

 private:
  std::size_t size_ = 0;
  bool row_numbers_ = false;
  bool are_integers_ = false;
  std::vector<char> bytes_;
  std::vector<std::uint64_t> ends_;   // ends_[row]: where the row's id ends in bytes_
  std::vector<std::uint32_t> slots_;  // rows by hash, linear probing, at most two thirds full
};

}  // namespace simile::data
