#pragma once

#include <exception>
#include <new>

#include <absl/status/status.h>

namespace simile::service {

// Runs a step of a call and returns its status. Turns exceptions of libraries into errors:
// bad_alloc into kResourceExhausted, others into kInternal, whose message goes to the log and not
// to the caller.
template <class Step>
absl::Status Guarded(Step&& step) noexcept {
  try {
    return step();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the server has no memory for this answer; ask for less");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace simile::service
