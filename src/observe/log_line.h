#pragma once

#include <span>
#include <string>
#include <string_view>

#include "observe/log.h"

namespace simile::observe {

// Format the part of a log line after time and level. Pure.

// `request failed request_id=4f1c rpc="Search Two"`: values with white space, quotes, '=' or
// control characters are quoted and escaped, so that a line stays one line and fields are distinct.
std::string TextLine(std::string_view message, std::span<const LogField> fields);

// `"message":"request failed","request_id":"4f1c"`: the inside of a JSON object. Bytes that are not
// UTF-8 become U+FFFD; non-finite numbers become null.
std::string JsonMembers(std::string_view message, std::span<const LogField> fields);

}  // namespace simile::observe
