#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "data/formats/buffered_reader.h"
#include "data/formats/json_reader.h"
#include "simile/limits.h"
#include "simile/payload.h"

namespace simile::data {

// Reads a file of JSON objects, one a line. Lines end with \n or \r\n, the last with either or
// nothing. A byte order mark at the beginning is ignored, and blank lines are skipped. Borrows the
// reader.
// REQUIRES: the reader is at the beginning of its file.
class JsonlReader {
 public:
  JsonlReader(BufferedReader& in, const Limits& limits);

  // Reads the next line's object. False at the end of the file.
  // Errors: kInvalidArgument naming file, line and column, after which the next call reads the next
  // object, unless can_go_on() says otherwise; the stream's own.
  absl::StatusOr<bool> Next(PayloadObject& object);
  // False when the file as a whole was refused: it is a list, a table, compressed.
  bool can_go_on() const { return count_ > 0; }
  // The error that the file holds its objects in another form (FindObjectsForm) if it does, else
  // `error`. Reported after reading, because a file of one line may have that form and be right.
  absl::Status ErrorOfFile(const absl::Status& error) const;

  // The number of the last object's line, from 1; 0 before the first.
  std::uint64_t line() const { return line_; }
  // The number of objects read so far. A refused object counts too.
  std::uint64_t count() const { return count_; }
  // Reads the rest of the file without parsing it. Returns the number of its objects, counting each
  // line that is not blank as one. Errors: the stream's own.
  absl::StatusOr<std::uint64_t> CountAll();
  // An error about the line of the last object: `FILE: line N: ...`.
  absl::Status ErrorAtLine(std::string_view what) const;
  // `2 blank lines are skipped, the first is line 7`, about blank lines between objects. Empty for
  // none.
  std::string BlankLinesText() const;
  void NoteBlankLines(std::vector<std::string>& notes) const;
  // Adds a note if the file holds its objects in another form.
  void NoteForm(std::vector<std::string>& notes) const;

 private:
  // Reads the next line that is not blank into text_.
  absl::StatusOr<bool> ReadLine();
  // Moves past the lines that do not begin an object. Returns how many.
  absl::StatusOr<std::uint64_t> SkipRestOfObject();
  // Moves past a byte order mark. Refuses a file that is no JSON, and JSON whose first line is no
  // object: a list, or an object that is indented.
  absl::Status CheckBegin();

  BufferedReader& in_;
  JsonReader json_;
  const std::size_t line_bytes_max_;
  std::string text_;
  absl::Status form_error_;  // ErrorOfFile's; OK where no other form was found
  std::uint64_t line_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t blank_lines_ = 0;  // before the last object
  std::uint64_t first_blank_line_ = 0;
};

// The object of a file's first line; empty where it has none that can be read.
PayloadObject ReadFirstObject(ByteSource& source, const Limits& limits);

}  // namespace simile::data
