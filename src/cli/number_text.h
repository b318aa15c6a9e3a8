#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace simile::cli {

// Numbers as people read them, always with their unit.

std::string WithThousands(std::uint64_t number);                      // 5,000
std::string Counted(std::uint64_t count, std::string_view singular);  // 1 row, 5,000 rows
std::string DurationText(std::uint64_t microseconds);                 // 94 us, 12.3 ms, 1.50 s
std::string BytesText(std::uint64_t bytes);                           // 812 B, 9.5 MiB, 1.25 GiB

}  // namespace simile::cli
