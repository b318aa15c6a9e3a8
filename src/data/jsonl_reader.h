#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "data/buffered_reader.h"
#include "data/json_reader.h"
#include "simile/limits.h"
#include "simile/payload.h"

namespace simile::data {

// Reads a file of JSON objects, one a line. Lines end with \n or \r\n, the last with either or
// nothing. Blank lines at the end and a byte order mark at the beginning are ignored; a blank line
// before an object is an error, because the number of lines must equal the number of rows. Borrows
// the reader, of which nothing may have been read.
class JsonlReader {
 public:
  JsonlReader(BufferedReader& in, const Limits& limits);

  // Reads the next line's object. False at the end of the file.
  // Errors: kInvalidArgument naming file, line and column.
  absl::StatusOr<bool> Next(PayloadObject& object);

  // The number of the last object's line, from 1; 0 before the first. So many objects were read.
  std::uint64_t line() const { return line_; }
  // An error about that line: `FILE: line N: ...`.
  absl::Status ErrorAtLine(std::string_view what) const;

 private:
  // Reads the next line that is not blank into text_.
  absl::StatusOr<bool> ReadLine();
  // Moves past a byte order mark. Refuses JSON that is not one object a line: a list, or an object
  // that is indented.
  absl::Status CheckBegin();

  BufferedReader& in_;
  JsonReader json_;
  const std::size_t line_bytes_max_;
  std::string text_;
  std::uint64_t line_ = 0;
};

}  // namespace simile::data
