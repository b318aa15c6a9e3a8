#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace simile::base {

// A number with separated thousands, as all messages write it: 62,423.
std::string Grouped(std::uint64_t number);

// A count and its noun: `1 row`, `5,000 rows`, `2 batches`.
std::string Counted(std::uint64_t count, std::string_view noun);

// Bytes in the largest fitting unit: `640 B`, `9.5 MiB`, `28.61 GiB`.
std::string BytesText(std::uint64_t bytes);

// Text in double quotes on one line of a message: control characters and bytes that are not UTF-8
// as escapes, long text cut at about 60 bytes. Harmless for any bytes from outside.
std::string Quoted(std::string_view text);

}  // namespace simile::base
