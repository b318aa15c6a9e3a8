#include "app/access_values.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <absl/strings/escaping.h>
#include <fmt/format.h>

#include "base/message_text.h"
#include "base/utf8.h"
#include "data/field_type.h"
#include "service/access/access_policy.h"

namespace simile::app {
namespace {

using service::TokenHash;
using WallTime = std::chrono::system_clock::time_point;

constexpr std::size_t kNameBytesMax = 128;

// How many different bytes of its 32 a hash has at least. A random one has about 30, and fewer than
// these with a probability below 1e-30.
constexpr std::size_t kDifferentBytesMin = 9;

constexpr std::string_view kMakeHash = "`printf %s TOKEN | sha256sum`, or `simile token`";

absl::Status BadValue(std::string_view text) {
  return absl::InvalidArgumentError(std::string(text));
}

// A text whose hash is made by mistake where a token should be.
struct NoToken {
  std::string_view text;
  std::string_view name;
};
constexpr NoToken kNoTokens[] = {
    {"", "an empty text"},         {"\n", "a line end alone"},
    {"\r\n", "a line end alone"},  {" ", "a space"},
    {"TOKEN", "the word TOKEN"},   {"TOKEN\n", "the word TOKEN"},
    {"$TOKEN", "the word $TOKEN"}, {"$TOKEN\n", "the word $TOKEN"},
};

bool LooksRandom(const TokenHash& hash) {
  std::bitset<256> seen;
  for (const std::uint8_t byte : hash) seen.set(byte);
  constexpr std::size_t kHalf = std::tuple_size_v<TokenHash> / 2;
  const bool repeats = std::equal(hash.begin(), hash.begin() + kHalf, hash.begin() + kHalf);
  return seen.count() >= kDifferentBytesMin && !repeats;
}

}  // namespace

absl::Status CheckPrincipalName(std::string_view name) {
  if (name.empty() || name.size() > kNameBytesMax) {
    return BadValue(fmt::format("has {}; give 1 to {}: logs and messages name the caller by it",
                                base::Counted(name.size(), "byte"), kNameBytesMax));
  }
  return CheckVisible(name);
}

absl::Status CheckVisible(std::string_view text) {
  if (text.starts_with(' ') || text.ends_with(' ')) {
    return BadValue(
        fmt::format("{} begins or ends with a space; leave it out", base::Quoted(text)));
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view sequence = text.substr(at, base::Utf8SequenceLength(text.substr(at)));
    if (sequence.empty()) return BadValue(fmt::format("{} is not UTF-8", base::Quoted(text)));
    const std::uint32_t code = base::CodePointOf(sequence);
    if (base::IsControl(sequence) || base::IsInvisible(code)) {
      return BadValue(fmt::format(
          "{} holds U+{:04X}, a control character, unusual space or invisible character; write "
          "plain text",
          base::Quoted(text), code));
    }
    at += sequence.size();
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenHash> ReadTokenHash(std::string_view text) {
  TokenHash hash;
  const bool is_hex = text.size() == 2 * hash.size() &&
                      text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  if (!is_hex) {
    return BadValue(
        fmt::format("not 64 hexadecimal digits; the token itself must not be here: {}", kMakeHash));
  }
  std::ranges::copy(absl::HexStringToBytes(absl::string_view(text.data(), text.size())),
                    hash.begin());
  if (!LooksRandom(hash)) {
    return BadValue(fmt::format("{} has a pattern, which no token's hash has: {}",
                                base::Quoted(text), kMakeHash));
  }
  for (const NoToken& none : kNoTokens) {
    if (hash != service::HashToken(none.text)) continue;
    return BadValue(
        fmt::format("the hash of {}: there was no token when it was made; {} with the token itself",
                    none.name, kMakeHash));
  }
  return hash;
}

absl::StatusOr<WallTime> ReadExpiry(std::string_view text) {
  const std::optional<std::int64_t> time = data::ParseTime(text);
  if (!time || data::LacksZone(text)) {
    return BadValue(
        fmt::format("{} is not a time as \"2027-05-31T12:00:00Z\", nor a day as \"2027-05-31\"",
                    base::Quoted(text)));
  }
  // system_clock counts nanoseconds in 64 bits, which end in 2262.
  constexpr std::int64_t kTimeMax =
      std::chrono::duration_cast<std::chrono::microseconds>(WallTime::duration::max()).count();
  if (*time < 0 || *time > kTimeMax) {
    return BadValue(
        fmt::format("{} is not between 1970 and 2262; leave it out for an access that does not end",
                    base::Quoted(text)));
  }
  return WallTime(std::chrono::microseconds(*time));
}

}  // namespace simile::app
