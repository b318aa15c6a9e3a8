#pragma once

#include <utility>

#include <absl/status/status.h>
#include <fmt/format.h>

namespace simile::service {

// A kInvalidArgument error that says what is wrong with a request.
template <class... Parts>
absl::Status Refuse(fmt::format_string<Parts...> format, Parts&&... parts) {
  return absl::InvalidArgumentError(fmt::format(format, std::forward<Parts>(parts)...));
}

}  // namespace simile::service
