#include "net/grpc_wire.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <system_error>

#include <absl/strings/escaping.h>
#include <fmt/format.h>

namespace simile::net {
namespace {

constexpr std::chrono::nanoseconds kLongestTimeout = std::chrono::hours(24);

bool IsPrintable(char byte) { return byte >= 0x20 && byte <= 0x7e; }

// The unit that a letter of grpc-timeout stands for; 0 for an unknown letter.
std::chrono::nanoseconds FindUnit(char letter) {
  constexpr std::string_view kLetters = "HMSmun";
  constexpr std::array<std::chrono::nanoseconds, 6> kUnits = {
      std::chrono::hours(1),        std::chrono::minutes(1),      std::chrono::seconds(1),
      std::chrono::milliseconds(1), std::chrono::microseconds(1), std::chrono::nanoseconds(1)};
  const std::size_t at = kLetters.find(letter);
  return at < kUnits.size() ? kUnits.at(at) : std::chrono::nanoseconds(0);
}

}  // namespace

std::string PercentEncode(std::string_view text) {
  std::string encoded;
  std::size_t whole_bytes = 0;  // of the encoded text, up to its last complete character
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char byte = text[i];
    const bool continues_character = (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
    if (!continues_character) whole_bytes = encoded.size();
    const bool is_space_at_an_end = byte == ' ' && (i == 0 || i + 1 == text.size());
    if (IsPrintable(byte) && byte != '%' && !is_space_at_an_end) {
      encoded += byte;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(byte));
    }
    if (encoded.size() > kStatusMessageBytesMax) {
      encoded.resize(whole_bytes);
      break;
    }
  }
  return encoded;
}

std::string EncodeBinaryValue(std::string_view bytes) {
  std::string text = absl::Base64Escape({bytes.data(), bytes.size()});
  text.erase(std::min(text.find('='), text.size()));
  return text;
}

std::optional<std::string> DecodeBinaryValue(std::string_view text) {
  std::string bytes;
  if (text.find_first_of(". \t") != std::string_view::npos ||  // absl skips these
      !absl::Base64Unescape({text.data(), text.size()}, &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

std::optional<std::chrono::nanoseconds> ParseTimeout(std::string_view text) {
  constexpr std::size_t kDigitsMax = 8;
  if (text.size() < 2 || text.size() > kDigitsMax + 1 || text.front() == '-') return std::nullopt;
  const char* const end = text.data() + text.size() - 1;
  std::int64_t count = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  const std::chrono::nanoseconds unit = FindUnit(text.back());
  if (error != std::errc() || rest != end || unit.count() == 0) return std::nullopt;
  return count > kLongestTimeout / unit ? kLongestTimeout : count * unit;
}

}  // namespace simile::net
