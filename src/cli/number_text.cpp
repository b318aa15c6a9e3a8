#include "cli/number_text.h"

#include <fmt/format.h>

namespace simile::cli {

std::string WithThousands(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

std::string Counted(std::uint64_t count, std::string_view singular) {
  return fmt::format("{} {}{}", WithThousands(count), singular, count == 1 ? "" : "s");
}

std::string DurationText(std::uint64_t microseconds) {
  const auto number = static_cast<double>(microseconds);
  if (microseconds < 10'000) return WithThousands(microseconds) + " us";
  if (microseconds < 1'000'000) return fmt::format("{:.1f} ms", number / 1e3);
  return fmt::format("{:.2f} s", number / 1e6);
}

std::string BytesText(std::uint64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < (std::uint64_t{1} << 20)) return fmt::format("{:.1f} KiB", number / 0x1p10);
  if (bytes < (std::uint64_t{1} << 30)) return fmt::format("{:.1f} MiB", number / 0x1p20);
  return fmt::format("{:.2f} GiB", number / 0x1p30);
}

}  // namespace simile::cli
