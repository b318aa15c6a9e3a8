#include "engine/bytes_text.h"

#include <fmt/format.h>

namespace simile::engine {

std::string BytesText(std::uint64_t bytes) {
  const auto amount = static_cast<double>(bytes);
  if (bytes < 1U << 10) return fmt::format("{} B", bytes);
  if (bytes < 1U << 20) return fmt::format("{:.1f} KiB", amount / 0x1p10);
  if (bytes < 1U << 30) return fmt::format("{:.1f} MiB", amount / 0x1p20);
  return fmt::format("{:.2f} GiB", amount / 0x1p30);
}

}  // namespace simile::engine
