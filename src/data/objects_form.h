#pragma once

#include <string>
#include <string_view>

namespace simile::data {

// A way in which a file of JSON holds its objects, other than one a line.
struct ObjectsForm {
  std::string_view what;    // "is one list of objects"
  std::string_view filter;  // of `jq -c`, which then writes one object a line
};

// Whether a file holds one object a line, two or more. By its first bytes, after a byte order mark.
bool HoldsLinesOfObjects(std::string_view begin);

// The form of a file, likewise. Null for one object a line, and where no form is known.
const ObjectsForm* FindObjectsForm(std::string_view begin);

// What writes the objects of a file one a line: `jq -c '.[]' a.json > a.jsonl`, in backquotes.
std::string JqCommand(const ObjectsForm& form, std::string_view from, std::string_view to);

// The same for a table: pandas.read_csv("a.csv").to_json("a.jsonl", ...).
//   format   "csv", "parquet"
//   options  of the reading, each after a comma: `, sep=";"`
std::string PandasCommand(std::string_view format, std::string_view from, std::string_view to,
                          std::string_view options = "");

}  // namespace simile::data
