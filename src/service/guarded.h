#pragma once

#include <exception>
#include <new>
#include <type_traits>

#include <absl/status/status.h>

#include "base/error_detail.h"

namespace simile::service {

// Runs a step of a call and returns its status: OK when the step returns nothing. Turns exceptions
// of libraries into errors: bad_alloc into OUT_OF_MEMORY, others into INTERNAL, whose message goes
// to the log and not to the caller.
template <class Step>
absl::Status Guarded(Step&& step) noexcept {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Step&>>) {
      step();
      return absl::OkStatus();
    } else {
      return step();
    }
  } catch (const std::bad_alloc&) {
    return base::OutOfMemory();
  } catch (const std::exception& error) {
    return base::Error(base::ErrorReason::kInternal, error.what());
  }
}

}  // namespace simile::service
