#include "cli/time_text.h"

#include <ctime>

#include <fmt/chrono.h>

namespace simile::cli {
namespace {

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

}  // namespace simile::cli
