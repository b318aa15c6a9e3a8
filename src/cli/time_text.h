#pragma once

#include <string>

#include "google/protobuf/timestamp.pb.h"

namespace simile::cli {

// `2023-11-14 22:13:20 UTC`
std::string TimeText(const google::protobuf::Timestamp& time);

// RFC 3339, to the second: `2023-11-14T22:13:20Z`
std::string Rfc3339Text(const google::protobuf::Timestamp& time);

}  // namespace simile::cli
