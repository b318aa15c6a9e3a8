#include "data/time_value.h"

#include <algorithm>
#include <cctype>

#include <absl/strings/string_view.h>
#include <absl/time/time.h>

namespace simile::data {
namespace {

constexpr std::size_t kDayBytes = 10;  // of 2024-05-31
constexpr std::string_view kUtc = " UTC";

// RFC 3339 begins with a year of four digits; absl also takes other lengths and leading spaces.
bool BeginsWithADay(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-dd";
  return text.size() >= kShape.size() &&
         std::equal(kShape.begin(), kShape.end(), text.begin(), [](char shape, char found) {
           return shape == 'd' ? std::isdigit(static_cast<unsigned char>(found)) != 0
                               : found == shape;
         });
}

}  // namespace

std::optional<std::int64_t> ParseTime(std::string_view text) {
  if (!BeginsWithADay(text)) return std::nullopt;
  const absl::string_view view(text.data(), text.size());
  absl::Time time;
  const auto reads = [&](const char* format) {
    return absl::ParseTime(format, view, &time, nullptr);
  };
  bool is_read = false;
  if (text.size() == kDayBytes) {
    is_read = reads("%Y-%m-%d");
  } else if (text[kDayBytes] == ' ') {
    is_read = reads("%Y-%m-%d %H:%M:%E*S%Ez") || reads("%Y-%m-%d %H:%M:%E*S") ||
              reads("%Y-%m-%d %H:%M:%E*S UTC") || reads("%Y-%m-%d %H:%M");
  } else {
    is_read =
        reads(absl::RFC3339_full) || reads("%Y-%m-%d%ET%H:%M:%E*S") || reads("%Y-%m-%d%ET%H:%M");
  }
  // absl skips white space at the end.
  const bool ends_well = std::isdigit(static_cast<unsigned char>(text.back())) != 0 ||
                         text.back() == 'Z' || text.back() == 'z' || text.ends_with(kUtc);
  if (!is_read || !ends_well) return std::nullopt;
  return absl::ToUnixMicros(time);
}

bool LacksZone(std::string_view text) {
  return text.size() > kDayBytes && text.back() != 'Z' && text.back() != 'z' &&
         !text.ends_with(kUtc) && text.find_first_of("+-", kDayBytes) == std::string_view::npos;
}

std::string TimeText(std::int64_t microseconds) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E*SZ", absl::FromUnixMicros(microseconds),
                          absl::UTCTimeZone());
}

}  // namespace simile::data
