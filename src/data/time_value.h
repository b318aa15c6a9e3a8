#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace simile::data {

// The time in microseconds since 1970 of an RFC 3339 text ("2024-05-31T12:00:00Z"), of one without
// a zone, which is UTC ("2024-05-31T12:00:00"), or of a day's beginning in UTC ("2024-05-31"). A
// space may stand for the T, with " UTC" for the Z, and seconds may be missing where the zone is.
// Nothing for any other text.
std::optional<std::int64_t> ParseTime(std::string_view text);
// Whether a time of day lacks its zone. REQUIRES: ParseTime reads the text.
bool LacksZone(std::string_view text);

// The inverse: RFC 3339 in UTC.
std::string TimeText(std::int64_t microseconds);

}  // namespace simile::data
