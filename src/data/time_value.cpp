#include "data/time_value.h"

#include <algorithm>
#include <cctype>

#include <absl/strings/string_view.h>
#include <absl/time/time.h>

namespace simile::data {
namespace {

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
  absl::Time time;
  const absl::string_view view(text.data(), text.size());
  if (!absl::ParseTime("%Y-%m-%d", view, &time, nullptr) &&
      !absl::ParseTime(absl::RFC3339_full, view, &time, nullptr)) {
    return std::nullopt;
  }
  return absl::ToUnixMicros(time);
}

std::string TimeText(std::int64_t microseconds) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E*SZ", absl::FromUnixMicros(microseconds),
                          absl::UTCTimeZone());
}

}  // namespace simile::data
