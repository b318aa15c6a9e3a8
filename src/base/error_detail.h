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
  std::string_view remedy;  // what a program can do; empty: nothing but to correct the request
};
std::span<const ErrorReasonInfo> ErrorReasons();  // in the order of the enum
const ErrorReasonInfo& InfoOf(ErrorReason reason);

// An error with the reason's code. Without memory for it, OutOfMemory.
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

// The same error with the reason and its code, unless it has a reason already. For errors of
// folders whose errors are not only a caller's (src/data).
absl::Status WithReason(absl::Status status, ErrorReason reason);
// The same error with another message.
absl::Status WithMessage(const absl::Status& status, std::string_view message);
// The same error with the field that is wrong; an earlier field is replaced.
absl::Status WithField(absl::Status status, std::string_view field);
// The same error with how long the caller should wait before it tries again. Without memory for
// that, OutOfMemory.
absl::Status WithRetryAfter(absl::Status status, std::chrono::milliseconds wait) noexcept;

// What the functions above attached. An error without a reason has the most general one of its
// code, or kInternal: no error that a caller can cause depends on this. REQUIRES: !status.ok()
ErrorReason ReasonOf(const absl::Status& status);
std::string FieldOf(const absl::Status& status);  // empty for none
std::optional<std::chrono::milliseconds> ReadRetryAfter(const absl::Status& status);

// What an errno says, in the system's words.
std::string SystemErrorText(int error);

// Whether a call of the system failed for want of memory or descriptors: not because of what it was
// asked for, and another time it may succeed.
bool IsLackOfResources(int error);

// OUT_OF_MEMORY when the system lacked memory or descriptors, else an error of this code.
absl::Status SystemError(int error, absl::StatusCode otherwise, std::string_view message);

}  // namespace simile::base
