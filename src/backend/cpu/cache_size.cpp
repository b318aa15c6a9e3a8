#include "backend/cpu/cache_size.h"

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

namespace simile::backend::cpu {
namespace {

std::string Word(const std::filesystem::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

// "2048K", "2M" or plain bytes.
std::optional<std::size_t> Bytes(const std::string& text) {
  constexpr std::size_t kBytesMax = std::size_t{1} << 30;
  std::size_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  const bool has_unit = unit == "K" || unit == "M";
  const int shift = unit == "K" ? 10 : unit == "M" ? 20 : 0;
  if (error != std::errc() || number == 0 || number > kBytesMax >> shift) return std::nullopt;
  return unit.empty() || has_unit ? std::optional(number << shift) : std::nullopt;
}

}  // namespace

std::optional<std::size_t> SecondLevelBytes(const std::filesystem::path& folder) {
  // No processor has as many caches; the numbers have no gaps.
  constexpr int kCachesMax = 16;
  for (int i = 0; i < kCachesMax; ++i) {
    const std::filesystem::path cache = folder / ("index" + std::to_string(i));
    if (Word(cache / "level") == "2" && Word(cache / "type") != "Instruction") {
      return Bytes(Word(cache / "size"));
    }
  }
  return std::nullopt;
}

}  // namespace simile::backend::cpu
