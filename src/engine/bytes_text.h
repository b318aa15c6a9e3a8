#pragma once

#include <cstdint>
#include <string>

namespace simile::engine {

// Bytes as people read them: "640 B", "9.5 MiB", "28.61 GiB".
std::string BytesText(std::uint64_t bytes);

}  // namespace simile::engine
