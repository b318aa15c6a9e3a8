#pragma once

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include <absl/status/status.h>

#include "base/error_detail.h"

namespace simile::base {

// What an errno says, in the system's words.
inline std::string SystemErrorText(int error) { return std::generic_category().message(error); }

// Whether a call of the system failed for want of memory or descriptors: not because of what it was
// asked for, and another time it may succeed.
inline bool IsLackOfResources(int error) {
  return error == ENOMEM || error == EMFILE || error == ENFILE;
}

// OUT_OF_MEMORY when the system lacked memory or descriptors, else an error of this code.
inline absl::Status SystemError(int error, absl::StatusCode otherwise, std::string_view message) {
  if (IsLackOfResources(error)) return Error(ErrorReason::kOutOfMemory, message);
  return {otherwise, absl::string_view(message.data(), message.size())};
}

}  // namespace simile::base
