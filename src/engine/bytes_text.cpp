#include "engine/bytes_text.h"

#include <fmt/format.h>

namespace simile::engine {

std::string BytesText(std::uint64_t bytes) {
  constexpr double kKib = 1024;
  const auto amount = static_cast<double>(bytes);
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", amount / kKib);
  if (bytes < 1024 * 1024 * 1024) return fmt::format("{:.1f} MiB", amount / (kKib * kKib));
  return fmt::format("{:.2f} GiB", amount / (kKib * kKib * kKib));
}

}  // namespace simile::engine
