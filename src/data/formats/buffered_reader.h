#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "data/formats/byte_source.h"

namespace simile::data {

// Reads a source through one buffer: exact byte counts, lines, or the bytes at hand. Borrows the
// source. One thread at a time.
class BufferedReader {
 public:
  explicit BufferedReader(ByteSource& source);

  const std::string& display_name() const { return source_.display_name(); }
  std::uint64_t size() const { return source_.size(); }
  std::uint64_t position() const { return position_; }
  std::uint64_t bytes_left() const { return source_.size() - position_; }

  // Fills `into` to its last byte. REQUIRES: into.size() <= bytes_left().
  absl::Status ReadExact(std::span<char> into);
  // REQUIRES: count <= bytes_left().
  absl::Status Skip(std::uint64_t count);
  // Fills `into` with the bytes from `offset` on, without moving. REQUIRES: as ByteSource::ReadAt.
  absl::Status ReadAt(std::uint64_t offset, std::span<char> into) {
    return source_.ReadAt(offset, into);
  }
  // The next bytes, as many as the buffer has; empty at the end. Valid until the next call.
  absl::StatusOr<std::string_view> ReadSome();
  // The next bytes without moving past them, at least one; empty at the end. Valid until the next
  // call.
  absl::StatusOr<std::string_view> Peek();
  // Moves past a byte order mark, which some programs write before UTF-8.
  // REQUIRES: nothing was read yet.
  absl::Status SkipByteOrderMark();
  // Reads up to the next newline or the end and drops the newline. False at the end of the file.
  //   line_number  what a message calls the line
  // Errors: kInvalidArgument when the line is longer than bytes_max; `line` never grows beyond
  // that, and the next call reads the next line.
  absl::StatusOr<bool> ReadLine(std::uint64_t line_number, std::size_t bytes_max,
                                std::string& line);

 private:
  // Moves past the next newline, or to the end.
  absl::Status SkipLine();
  // Reads into the empty buffer. False at the end.
  absl::StatusOr<bool> Fill();
  void Consume(std::size_t count);

  ByteSource& source_;
  std::vector<char> buffer_;
  std::string_view window_;     // the unread part of the buffer
  std::uint64_t position_ = 0;  // bytes consumed
};

// kInvalidArgument that begins with the file's name.
absl::Status Refuse(const BufferedReader& in, std::string_view why);

// Reads a header that begins with its length, and leaves the reader after it.
//   length_bytes  how many little-endian bytes the length has
//   bytes_max     the longest header that is read; nothing is allocated for a longer one
// REQUIRES: length_bytes <= min(8, in.bytes_left()).
// Errors: kInvalidArgument, beginning with the file's name, when the header is longer than
// bytes_max or than the rest of the file.
absl::StatusOr<std::string> ReadSizedHeader(BufferedReader& in, std::size_t length_bytes,
                                            std::uint64_t bytes_max);

// Checks that exactly as many bytes follow the header as its contents need.
//   needs  begins the message: "the tensors take"
absl::Status CheckDataBytes(const BufferedReader& in, std::string_view needs, std::uint64_t bytes);

// What a reader keeps of the rows or lines that it checks: a load keeps them, an inspection does
// not.
enum class Keep : std::uint8_t { kRows, kNothing };

}  // namespace simile::data
