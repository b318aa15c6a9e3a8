#include "base/error_detail.h"

#include <array>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <new>
#include <system_error>
#include <utility>

#include <absl/strings/cord.h>

namespace simile::base {
namespace {

using absl::StatusCode;

constexpr std::array kReasons{
    ErrorReasonInfo{
        ErrorReason::kRequestNotParsed, "REQUEST_NOT_PARSED", StatusCode::kInvalidArgument,
        "the bytes of the request are not a message of the method's type, or have too many fields "
        "that the server does not know",
        "generate its classes from the current contract"},
    ErrorReasonInfo{ErrorReason::kInvalidField, "INVALID_FIELD", StatusCode::kInvalidArgument,
                    "a field of the request has a value that is not allowed, or is missing", ""},
    ErrorReasonInfo{ErrorReason::kInvalidFilter, "INVALID_FILTER", StatusCode::kInvalidArgument,
                    "a filter cannot be parsed, or does not fit the collection's fields", ""},
    ErrorReasonInfo{ErrorReason::kUnknownPayloadField, "UNKNOWN_PAYLOAD_FIELD",
                    StatusCode::kInvalidArgument, "no row of the collection has this payload field",
                    ""},
    ErrorReasonInfo{ErrorReason::kDimensionMismatch, "DIMENSION_MISMATCH",
                    StatusCode::kInvalidArgument,
                    "a vector has another number of dimensions than the collection", ""},
    ErrorReasonInfo{
        ErrorReason::kInvalidPageToken, "INVALID_PAGE_TOKEN", StatusCode::kInvalidArgument,
        "the page token or cursor is damaged, has an unknown format, or belongs to another request",
        "start again with the first page"},
    ErrorReasonInfo{ErrorReason::kReplyTooLarge, "REPLY_TOO_LARGE", StatusCode::kInvalidArgument,
                    "the answer would be larger than the call allows",
                    "ask for less, or raise `reply_bytes_max`"},
    ErrorReasonInfo{ErrorReason::kInvalidFiles, "INVALID_FILES", StatusCode::kInvalidArgument,
                    "the folder to load, or a file in it, is missing, unreadable or invalid", ""},
    ErrorReasonInfo{ErrorReason::kOutsideDataRoot, "OUTSIDE_DATA_ROOT",
                    StatusCode::kInvalidArgument,
                    "the folder to load is not inside the server's data root, or it has none", ""},
    ErrorReasonInfo{ErrorReason::kCollectionNotFound, "COLLECTION_NOT_FOUND", StatusCode::kNotFound,
                    "no collection has this name", ""},
    ErrorReasonInfo{ErrorReason::kItemNotFound, "ITEM_NOT_FOUND", StatusCode::kNotFound,
                    "the collection has no item with this id, or `required_filter` excludes it",
                    ""},
    ErrorReasonInfo{ErrorReason::kUserNotFound, "USER_NOT_FOUND", StatusCode::kNotFound,
                    "the collection has no profile vector of this user, or the user is not the "
                    "caller's (`users` of the access file)",
                    "ask with `cold_start`"},
    ErrorReasonInfo{ErrorReason::kCollectionExists, "COLLECTION_EXISTS", StatusCode::kAlreadyExists,
                    "other content is served under this name",
                    "reload it, or load under another name"},
    ErrorReasonInfo{ErrorReason::kCollectionLoading, "COLLECTION_LOADING",
                    StatusCode::kFailedPrecondition, "the collection loads for the first time",
                    "repeat after `RetryInfo`"},
    ErrorReasonInfo{ErrorReason::kCollectionNotLoaded, "COLLECTION_NOT_LOADED",
                    StatusCode::kFailedPrecondition,
                    "the collection's folder did not load, and the server goes on without it "
                    "(`collections.required`)",
                    "ask another server; mend the folder, then reload the collection"},
    ErrorReasonInfo{ErrorReason::kSnapshotMismatch, "SNAPSHOT_MISMATCH",
                    StatusCode::kFailedPrecondition,
                    "other content is served than `expected_snapshot_id` says",
                    "ask another server, or accept what is served"},
    ErrorReasonInfo{ErrorReason::kShapeChange, "SHAPE_CHANGE", StatusCode::kFailedPrecondition,
                    "the dimension, the metric or the type of a payload field would change, and "
                    "`allow_shape_change` is not set",
                    "set it when callers are ready for the change"},
    ErrorReasonInfo{ErrorReason::kOverlapTooLow, "OVERLAP_TOO_LOW", StatusCode::kFailedPrecondition,
                    "less of the answers would stay the same than `min_overlap` asks for",
                    "look at the new vectors, or reload with a smaller `min_overlap`: 0 takes any"},
    ErrorReasonInfo{ErrorReason::kAllScoresEqual, "ALL_SCORES_EQUAL",
                    StatusCode::kFailedPrecondition,
                    "a sample of the new vectors all score the same with each other",
                    "look at the new vectors"},
    ErrorReasonInfo{
        ErrorReason::kNothingToRollBack, "NOTHING_TO_ROLL_BACK", StatusCode::kFailedPrecondition,
        "there is no earlier generation, or its folder is gone or holds other content by now", ""},
    ErrorReasonInfo{
        ErrorReason::kPageSnapshotGone, "PAGE_SNAPSHOT_GONE", StatusCode::kAborted,
        "the server never had, or no longer has, the content of the page token or cursor",
        "start again with the first page, or continue on another server"},
    ErrorReasonInfo{ErrorReason::kChangeInProgress, "CHANGE_IN_PROGRESS", StatusCode::kAborted,
                    "another change of the same collection is under way",
                    "repeat when it has ended"},
    ErrorReasonInfo{ErrorReason::kFilesChanged, "FILES_CHANGED", StatusCode::kAborted,
                    "a file changed, or was cut, while it was read",
                    "repeat when the files are complete"},
    ErrorReasonInfo{ErrorReason::kChangesNotAllowed, "CHANGES_NOT_ALLOWED",
                    StatusCode::kPermissionDenied,
                    "the server was not started with `--allow-changes`", ""},
    ErrorReasonInfo{ErrorReason::kAdminNotAllowed, "ADMIN_NOT_ALLOWED",
                    StatusCode::kPermissionDenied,
                    "the server was not started with `--allow-admin`", ""},
    ErrorReasonInfo{ErrorReason::kUnauthenticated, "UNAUTHENTICATED", StatusCode::kUnauthenticated,
                    "the call has no token or client certificate that the server knows, or its "
                    "access has ended",
                    "send `authorization: Bearer TOKEN`"},
    ErrorReasonInfo{ErrorReason::kPermissionDenied, "PERMISSION_DENIED",
                    StatusCode::kPermissionDenied,
                    "the caller's role or collections do not allow the call", ""},
    ErrorReasonInfo{ErrorReason::kCallerLimit, "CALLER_LIMIT", StatusCode::kResourceExhausted,
                    "the caller has as many calls, queries or bytes under way as it may have",
                    "repeat after `RetryInfo`, or send less a call"},
    ErrorReasonInfo{
        ErrorReason::kQueueFull, "QUEUE_FULL", StatusCode::kResourceExhausted,
        "too much work, or too many unread replies or unfinished requests wait, or the deadline "
        "is too near",
        "repeat after `RetryInfo`, or on another server"},
    ErrorReasonInfo{ErrorReason::kChangeQueueFull, "CHANGE_QUEUE_FULL",
                    StatusCode::kResourceExhausted,
                    "too many changes of collections, or calls for them, wait", "repeat later"},
    ErrorReasonInfo{ErrorReason::kDoesNotFit, "DOES_NOT_FIT", StatusCode::kResourceExhausted,
                    "the collection to load does not fit in memory", "unload another collection"},
    ErrorReasonInfo{ErrorReason::kOutOfMemory, "OUT_OF_MEMORY", StatusCode::kResourceExhausted,
                    "no memory, or no file descriptor, is left to answer the call",
                    "repeat later, or ask for less"},
    ErrorReasonInfo{
        ErrorReason::kDeadlineExceeded, "DEADLINE_EXCEEDED", StatusCode::kDeadlineExceeded,
        "the deadline of the call, or the timeout of a stream's request, passed, or would "
        "pass before a large reply arrives",
        "repeat, if the answer is still wanted"},
    ErrorReasonInfo{ErrorReason::kCancelled, "CANCELLED", StatusCode::kCancelled,
                    "the caller cancelled the call", ""},
    ErrorReasonInfo{ErrorReason::kStopping, "STOPPING", StatusCode::kUnavailable,
                    "the server is stopping", "repeat on another server"},
    ErrorReasonInfo{ErrorReason::kInternal, "INTERNAL", StatusCode::kInternal,
                    "a fault of the server; its log has the details under the request id",
                    "report it with the request id"},
};

constexpr absl::string_view kReasonKey = "simile/reason";
constexpr absl::string_view kFieldKey = "simile/field";
constexpr absl::string_view kRetryKey = "simile/retry-after-ms";

// The reason of an error that was made without one. Codes such as NOT_FOUND have no general reason.
ErrorReason GeneralReason(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kOutOfRange:
      return ErrorReason::kInvalidField;
    case StatusCode::kResourceExhausted:
      return ErrorReason::kOutOfMemory;
    case StatusCode::kDeadlineExceeded:
      return ErrorReason::kDeadlineExceeded;
    case StatusCode::kCancelled:
      return ErrorReason::kCancelled;
    default:
      return ErrorReason::kInternal;
  }
}

std::string_view ToView(absl::string_view text) { return {text.data(), text.size()}; }

void CopyPayloads(const absl::Status& from, absl::Status& to) {
  from.ForEachPayload(
      [&](absl::string_view key, const absl::Cord& payload) { to.SetPayload(key, payload); });
}

constexpr bool InOrderOfTheEnum() {
  for (std::size_t i = 0; i < kReasons.size(); ++i) {
    if (kReasons.at(i).reason != static_cast<ErrorReason>(i)) return false;
  }
  return true;
}
static_assert(InOrderOfTheEnum() && kReasons.back().reason == ErrorReason::kInternal);

absl::Status MakeError(ErrorReason reason, std::string_view message, std::string_view field) {
  absl::Status status(InfoOf(reason).code, absl::string_view(message.data(), message.size()));
  status.SetPayload(kReasonKey, absl::Cord(std::to_string(static_cast<int>(reason))));
  return field.empty() ? status : WithField(std::move(status), field);
}

// Copies share its text.
const absl::Status kOutOfMemory = MakeError(
    ErrorReason::kOutOfMemory, "the server has no memory for this answer; ask for less", {});

}  // namespace

std::span<const ErrorReasonInfo> ErrorReasons() { return kReasons; }

const ErrorReasonInfo& InfoOf(ErrorReason reason) {
  return kReasons.at(static_cast<std::size_t>(reason));
}

absl::Status Error(ErrorReason reason, std::string_view message, std::string_view field) noexcept {
  try {
    return MakeError(reason, message, field);
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

absl::Status OutOfMemory() noexcept { return kOutOfMemory; }

absl::Status WithReason(absl::Status status, ErrorReason reason) {
  assert(!status.ok());
  if (status.GetPayload(kReasonKey)) return status;
  absl::Status with_reason = Error(reason, ToView(status.message()));
  CopyPayloads(status, with_reason);
  return with_reason;
}

absl::Status WithMessage(const absl::Status& status, std::string_view message) {
  absl::Status with_message(status.code(), absl::string_view(message.data(), message.size()));
  CopyPayloads(status, with_message);
  return with_message;
}

absl::Status WithField(absl::Status status, std::string_view field) {
  status.SetPayload(kFieldKey, absl::Cord(absl::string_view(field.data(), field.size())));
  return status;
}

absl::Status WithRetryAfter(absl::Status status, std::chrono::milliseconds wait) noexcept {
  try {
    status.SetPayload(kRetryKey, absl::Cord(std::to_string(wait.count())));
    return status;
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

ErrorReason ReasonOf(const absl::Status& status) {
  assert(!status.ok());
  const auto number = status.GetPayload(kReasonKey);
  return number ? static_cast<ErrorReason>(std::stoi(std::string(*number)))
                : GeneralReason(status.code());
}

std::string FieldOf(const absl::Status& status) {
  const auto field = status.GetPayload(kFieldKey);
  return field ? std::string(*field) : std::string();
}

std::optional<std::chrono::milliseconds> ReadRetryAfter(const absl::Status& status) {
  const auto wait = status.GetPayload(kRetryKey);
  if (!wait) return std::nullopt;
  return std::chrono::milliseconds(std::stoll(std::string(*wait)));
}

std::string SystemErrorText(int error) { return std::generic_category().message(error); }

bool IsLackOfResources(int error) { return error == ENOMEM || error == EMFILE || error == ENFILE; }

absl::Status SystemError(int error, absl::StatusCode otherwise, std::string_view message) {
  if (IsLackOfResources(error)) return Error(ErrorReason::kOutOfMemory, message);
  return {otherwise, absl::string_view(message.data(), message.size())};
}

}  // namespace simile::base
