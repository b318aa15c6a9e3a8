#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/status.h>

#include "data/buffered_reader.h"

namespace simile::data {

// How the small file begins that Git LFS leaves where the file itself was not fetched.
inline constexpr std::string_view kGitLfsPointer = "version https://git-lfs.github.com/spec/";

// What a file that should hold JSON looks like, so that a file of another kind is refused by its
// kind rather than by its first byte.
enum class TextShape : std::uint8_t {
  kList,      // `[` and then an object
  kIndented,  // `{` alone on its line
  kTable,     // a first line of names between commas, semicolons or tabs
  kLines,     // several lines, of which the first begins no list, object or string
  kUtf16,
  kGzip,
  kGitLfs,
  kOther,
};

// By the file's first bytes; a byte order mark of UTF-8 is passed over.
TextShape TextShapeOf(std::string_view begin);

// Refuses what no text editor shows as JSON: kUtf16, kGzip and kGitLfs.
absl::Status CheckEncoding(const BufferedReader& in, TextShape shape);

}  // namespace simile::data
