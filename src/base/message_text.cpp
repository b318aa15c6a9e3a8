#include "base/message_text.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace simile::base {

std::string Grouped(std::uint64_t number) {
  std::string text = fmt::to_string(number);
  for (std::size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

std::string Counted(std::uint64_t count, std::string_view noun) {
  const char* plural = noun.ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}", Grouped(count), noun, count == 1 ? "" : plural);
}

std::string BytesText(std::uint64_t bytes) {
  const auto amount = static_cast<double>(bytes);
  if (bytes < 1U << 10) return fmt::format("{} B", bytes);
  if (bytes < 1U << 20) return fmt::format("{:.1f} KiB", amount / 0x1p10);
  if (bytes < 1U << 30) return fmt::format("{:.1f} MiB", amount / 0x1p20);
  return fmt::format("{:.2f} GiB", amount / 0x1p30);
}

std::string Quoted(std::string_view text) {
  constexpr std::size_t kBytesMax = 60;
  std::string quoted = "\"";
  std::size_t at = 0;
  while (at < text.size() && at < kBytesMax) {
    const std::size_t length = Utf8SequenceLength(text.substr(at));
    const auto byte = static_cast<unsigned char>(text[at]);
    if (length == 0) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else if (IsControl(text.substr(at, length))) {
      quoted +=
          fmt::format("\\u{:04x}", length == 1 ? byte : static_cast<unsigned char>(text[at + 1]));
    } else {
      quoted += text.substr(at, length);
    }
    at += length == 0 ? 1 : length;
  }
  quoted += at < text.size() ? "...\"" : "\"";
  return quoted;
}

}  // namespace simile::base
