#include "cli/plan/byte_quantity.h"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::cli {
namespace {

struct ByteUnit {
  std::string_view name;
  double bytes;
};
constexpr std::array<ByteUnit, 8> kByteUnits = {{{"MiB", 0x1p20},
                                                 {"GiB", 0x1p30},
                                                 {"TiB", 0x1p40},
                                                 {"KiB", 0x1p10},
                                                 {"MB", 1e6},
                                                 {"GB", 1e9},
                                                 {"TB", 1e12},
                                                 {"B", 1}}};

// As of collections.memory_bytes_max; of a second, no machine reads more either.
constexpr double kBytesMax = 0x1p50;

absl::StatusOr<double> ParseQuantity(std::string_view text, std::string_view ending,
                                     std::string_view example) {
  const absl::Status wrong = absl::InvalidArgumentError(fmt::format(
      "{} is not a quantity; give a number and a unit, as in {}", base::Quoted(text), example));
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number <= 0) return wrong;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (!unit.ends_with(ending)) return wrong;
  unit.remove_suffix(ending.size());
  for (const ByteUnit& each : kByteUnits) {
    if (each.name != unit) continue;
    const double bytes = number * each.bytes;
    if (bytes >= 1 && bytes <= kBytesMax) return bytes;
    return absl::InvalidArgumentError(
        fmt::format("{} is out of range: 1B{} to 1024TiB{}", base::Quoted(text), ending, ending));
  }
  return wrong;
}

}  // namespace

absl::StatusOr<double> ParseBytes(std::string_view text) {
  return ParseQuantity(text, "", "16GiB");
}

absl::StatusOr<double> ParseBandwidth(std::string_view text) {
  return ParseQuantity(text, "/s", "300GB/s");
}

}  // namespace simile::cli
