#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace simile::data {

// A number with its thousands set apart, as every message shows them: 62,423.
std::string Grouped(std::uint64_t number);

// A count and its noun: `1 row`, `5,000 rows`.
std::string Counted(std::uint64_t count, std::string_view noun);

// Bytes as people read them: `640 B`, `9.5 MiB`, `28.61 GiB`.
std::string BytesText(std::uint64_t bytes);

// Text from a file in double quotes, fit for one line of a message: control characters and bytes
// that are not UTF-8 shown as escapes, long text cut at about 60 characters.
std::string Quoted(std::string_view text);

}  // namespace simile::data
