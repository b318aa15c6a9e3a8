#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/status.h>

#include "data/buffered_reader.h"

namespace simile::data {

// What a file looks like that should hold JSON or numbers, so that a file of another kind is
// refused by its kind rather than by its first byte.
enum class TextShape : std::uint8_t {
  kTable,  // a first line of names between commas, semicolons or tabs
  kLines,  // several lines, of which the first begins no list, object or string
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

// By the file's first bytes; a byte order mark of UTF-8 is passed over.
TextShape TextShapeOf(std::string_view begin);

// Refuses what holds no data whatever the file's name is: kUtf16, kGzip, and what a failed download
// or checkout leaves, kGitLfs, kWebPage, kXml and kEmpty.
absl::Status CheckHoldsData(const BufferedReader& in, TextShape shape);

}  // namespace simile::data
