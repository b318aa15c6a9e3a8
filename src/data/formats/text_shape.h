#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <absl/status/status.h>

#include "data/formats/buffered_reader.h"

namespace simile::data {

// What a file looks like that should hold JSON or numbers. A file of another kind is then refused
// by its kind, not by its first byte.
enum class TextShape : std::uint8_t {
  kTable,  // a first line of names between commas, semicolons or tabs
  kLines,  // several lines; the first begins no list, object or string
  kUtf16,
  kGzip,
  kGitLfs,
  kWebPage,
  kXml,
  kEmpty,
  kOther,
};

// The text after its leading white space.
std::string_view WithoutBlanks(std::string_view text);

// Classifies a file by its first bytes, after a byte order mark of UTF-8.
TextShape ClassifyText(std::string_view begin);

// Refuses a file that holds no data, whatever its name is: kUtf16, kGzip, and what a failed
// download or checkout leaves, kGitLfs, kWebPage, kXml and kEmpty.
absl::Status CheckHoldsData(const BufferedReader& in, TextShape shape);

// A way in which a file of JSON holds its objects, other than one a line.
struct ObjectsForm {
  std::string_view what;    // "is one list of objects"
  std::string_view filter;  // of `jq -c`, which then writes one object a line
};

// Whether a file holds one object a line, two or more. By its first bytes, after a byte order mark.
bool HoldsLinesOfObjects(std::string_view begin);

// Finds the form of a file by its first bytes. Null for one object a line, and where no form is
// known.
const ObjectsForm* FindObjectsForm(std::string_view begin);

// The command that writes the objects of a file one a line: `jq -c '.[]' a.json > a.jsonl`, in
// backquotes.
std::string JqCommand(const ObjectsForm& form, std::string_view from, std::string_view to);

// The same for a table: pandas.read_csv("a.csv").to_json("a.jsonl", ...).
//   format   "csv", "parquet"
//   options  of the reading, each after a comma: `, sep=";"`
std::string PandasCommand(std::string_view format, std::string_view from, std::string_view to,
                          std::string_view options = "");

}  // namespace simile::data
