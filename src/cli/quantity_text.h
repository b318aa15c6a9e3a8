#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <absl/status/statusor.h>

#include "google/protobuf/timestamp.pb.h"

namespace simile::cli {

// Formats times, rates and bytes, and parses them from flags.

// `2023-11-14 22:13:20 UTC`
std::string TimeText(const google::protobuf::Timestamp& time);

// RFC 3339, to the second: `2023-11-14T22:13:20Z`
std::string Rfc3339Text(const google::protobuf::Timestamp& time);

// A duration at a glance: `1.8 us`, `86 us`, `1.4 ms`, `2.0 s`
std::string ShortTimeText(double seconds);

// A rate per second: `0/s`, `0.5/s`, `41,205/s`
std::string RateText(double per_s);

// Parses "30s", "500ms", "2m", or a number of seconds, up to a day. Errors: kInvalidArgument, which
// says what would be right.
absl::StatusOr<std::chrono::nanoseconds> ParseDuration(std::string_view text);

// Parses a number of bytes such as `16GiB`, `80 GB` or `1.5TiB`: 1 to 2^50. Errors:
// kInvalidArgument, which says what would be right.
absl::StatusOr<double> ParseBytes(std::string_view text);
// Parses bytes per second: `300GB/s`, `4.8 TB/s`. Errors: as ParseBytes.
absl::StatusOr<double> ParseBandwidth(std::string_view text);

}  // namespace simile::cli
