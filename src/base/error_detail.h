#pragma once

#include <chrono>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <absl/status/status.h>

namespace simile::base {

// Why a call failed, for programs: the `reason` of google.rpc.ErrorInfo with domain "simile". Names
// and codes are a part of the wire contract; docs/api.md lists them (tests/tidy/error_reasons.py).
enum class ErrorReason : std::uint8_t {
  kRequestNotParsed,
  kInvalidField,
  kInvalidFilter,
  kUnknownPayloadField,
  kDimensionMismatch,
  kInvalidPageToken,
  kReplyTooLarge,
  kInvalidFiles,
  kOutsideDataRoot,
  kCollectionNotFound,
  kItemNotFound,
  kUserNotFound,
  kCollectionExists,
  kCollectionLoading,
  kCollectionNotLoaded,
  kSnapshotMismatch,
  kShapeChange,
  kOverlapTooLow,
  kAllScoresEqual,
  kNothingToRollBack,
  kPageSnapshotGone,
  kChangeInProgress,
  kFilesChanged,
  kChangesNotAllowed,
  kAdminNotAllowed,
  kUnauthenticated,
  kPermissionDenied,
  kCallerLimit,
  kQueueFull,
  kChangeQueueFull,
  kDoesNotFit,
  kOutOfMemory,
  kDeadlineExceeded,
  kCancelled,
  kStopping,
  kInternal,
};

// One row of the table of reasons.
struct ErrorReasonInfo {
  ErrorReason reason;
  std::string_view name;  // "COLLECTION_NOT_FOUND"
  absl::StatusCode code;
  // For docs/api.md.
  std::string_view meaning;
  std::string_view remedy;  // what a program can do; empty: only correct the request
};
std::span<const ErrorReasonInfo> ErrorReasons();  // in the order of the enum
const ErrorReasonInfo& InfoOf(ErrorReason reason);

// Makes an error with the reason's code. Returns OutOfMemory when memory for it is lacking.
//   field  the field of the request that is wrong, when one is: "queries[3].k"
absl::Status Error(ErrorReason reason, std::string_view message,
                   std::string_view field = {}) noexcept;
// OUT_OF_MEMORY, made before the program begins: takes no memory.
absl::Status OutOfMemory() noexcept;
// What `make` returns, or OutOfMemory when it lacks memory.
template <class Make>
auto OrOutOfMemory(const Make& make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

// Gives the error the reason and the reason's code. An error that has a reason stays as it is. For
// layers such as src/data, whose errors go to commands as well as to callers.
absl::Status WithReason(absl::Status status, ErrorReason reason);
// The same error with another message.
absl::Status WithMessage(const absl::Status& status, std::string_view message);
// The same error with the field that is wrong; an earlier field is replaced.
absl::Status WithField(absl::Status status, std::string_view field);
// The same error with how long the caller should wait before the next attempt. Returns OutOfMemory
// when memory for that is lacking.
absl::Status WithRetryAfter(absl::Status status, std::chrono::milliseconds wait) noexcept;

// Return what the functions above attached. An error without a reason has the general reason of its
// code, or kInternal. Errors that a caller can cause always have their own reason.
// REQUIRES: !status.ok()
ErrorReason ReasonOf(const absl::Status& status);
std::string FieldOf(const absl::Status& status);  // empty for none
std::optional<std::chrono::milliseconds> ReadRetryAfter(const absl::Status& status);

// What an errno says, in the system's words.
std::string SystemErrorText(int error);

// Whether a system call failed for lack of memory or descriptors. The request was not at fault, and
// a later attempt may succeed.
bool IsLackOfResources(int error);

// OUT_OF_MEMORY when the system lacked memory or descriptors, else an error of this code.
absl::Status SystemError(int error, absl::StatusCode otherwise, std::string_view message);

}  // namespace simile::base
