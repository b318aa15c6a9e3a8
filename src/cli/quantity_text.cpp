#include "cli/quantity_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <ctime>

#include <fmt/chrono.h>
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

// The largest collections.memory_bytes_max. Also bounds bandwidths, because no machine reads more
// per second.
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

constexpr double kDurationSecondsMax = 24 * 3'600;

std::tm CalendarTime(const google::protobuf::Timestamp& time) {
  return fmt::gmtime(static_cast<std::time_t>(time.seconds()));
}

}  // namespace

std::string TimeText(const google::protobuf::Timestamp& time) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", CalendarTime(time));
}

std::string Rfc3339Text(const google::protobuf::Timestamp& time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", CalendarTime(time));
}

std::string ShortTimeText(double seconds) {
  const auto in = [seconds](double units, const char* unit) {
    const double number = seconds * units;
    return fmt::format("{:.{}f} {}", number, number < 9.95 ? 1 : 0, unit);
  };
  if (seconds < 0.9995e-3) return in(1e6, "us");
  if (seconds < 0.9995) return in(1e3, "ms");
  return fmt::format("{:.1f} s", seconds);
}

std::string RateText(double per_s) {
  if (per_s <= 0) return "0/s";
  return per_s < 9.95 ? fmt::format("{:.1f}/s", per_s)
                      : fmt::format("{}/s", base::Grouped(static_cast<std::uint64_t>(per_s + 0.5)));
}

absl::StatusOr<std::chrono::nanoseconds> ParseDuration(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  double seconds = number;
  bool known = true;
  if (unit == "us") {
    seconds = number / 1e6;
  } else if (unit == "ms") {
    seconds = number / 1e3;
  } else if (unit == "m") {
    seconds = number * 60;
  } else {
    known = unit.empty() || unit == "s";
  }
  if (error != std::errc() || !known || !(seconds >= 0 && seconds <= kDurationSecondsMax)) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is no time; give seconds, or 500ms, 30s, 2m; at most a day", text));
  }
  return std::chrono::nanoseconds(std::llround(seconds * 1e9));
}

absl::StatusOr<double> ParseBytes(std::string_view text) {
  return ParseQuantity(text, "", "16GiB");
}

absl::StatusOr<double> ParseBandwidth(std::string_view text) {
  return ParseQuantity(text, "/s", "300GB/s");
}

}  // namespace simile::cli
