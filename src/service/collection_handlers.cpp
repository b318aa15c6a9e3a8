#include "service/handlers.h"

#include <algorithm>
#include <utility>

#include "base/message_text.h"
#include "filter/suggestions.h"
#include "service/calls/call.h"
#include "service/changes/change_audit.h"
#include "service/requests/answer_options.h"
#include "service/requests/page_token.h"
#include "service/requests/request_fields.h"
#include "simile/v1/collections.pb.h"

namespace simile::service {
namespace {

constexpr std::uint32_t kFieldValuesDefault = 5;
constexpr std::uint32_t kCollectionsPageDefault = 100;
constexpr std::string_view kFewerValues = "lower values_max";

// The step that a call has not reached when it ends, for the message.
constexpr std::string_view kCollectionsStep = "the collections were described";

// Errors: those of `work`.
absl::Status Describe(const CollectionParts& parts, const PermittedStatus& status,
                      base::LongWork& work, v1::Collection& message) {
  return FillCollection(status, parts.backend, parts.executor, work, message);
}

// Makes the caller of a change from a call: the call gets the progress, and then the collection.
template <class Response>
PermittedChangeCaller MakeChangeCaller(const CollectionParts& parts, ProgressCall<Response>& call) {
  PermittedChangeCaller caller;
  caller.progress = [&call](const engine::ChangeProgress& progress) {
    // Without memory this caller misses a progress message; the change goes on.
    static_cast<void>(Guarded([&] {
      Response response;
      FillProgress(progress, *response.mutable_progress());
      call.Send(std::move(response));
    }));
  };
  caller.done = [&parts, &call](const absl::StatusOr<PermittedStatus>& served) {
    if (!served.ok()) return call.Finish(served.status());
    call.Finish(Guarded([&] {
      Response response;
      base::LongWork work = MakeLongWork(call, parts.clock, kCollectionsStep);
      absl::Status filled = Describe(parts, *served, work, *response.mutable_collection());
      if (filled.ok()) call.Send(std::move(response));
      return filled;
    }));
  };
  caller.left = call.cancelled();
  caller.key = call.caller();
  return caller;
}

//   request  returns the ChangeRequest
template <class Response, class Request>
void StartChange(const CollectionParts& parts, ProgressCall<Response>& call,
                 const Request& request) {
  ChangeRequest change;
  std::shared_ptr<const ChangeAudit> audit;
  absl::StatusOr<PermittedCollection> collection;
  PermittedChangeCaller caller;
  absl::Status status = Guarded([&] {
    change = request();
    audit = std::make_shared<const ChangeAudit>(parts.audit, call, change.collection);
    caller = MakeChangeCaller(parts, call);
    collection = call.access().Permit(change.collection);
    return collection.status();
  });
  if (status.ok()) {
    status = parts.collections.Start(*collection, std::move(change), audit, std::move(caller));
  } else if (audit) {
    audit->Ended(status);
  }
  if (!status.ok()) call.Finish(status);
}

// A reload or a rollback.
template <class Request>
ChangeRequest MakeReplacement(ChangeKind kind, const Request& request) {
  ChangeRequest change;
  change.kind = kind;
  change.collection = request.collection();
  change.allow_shape_change = request.allow_shape_change();
  change.expected_snapshot_id = request.expected_snapshot_id();
  return change;
}

absl::StatusOr<std::uint32_t> ValidatePageSize(const v1::ListCollectionsRequest& request,
                                               const Limits& limits) {
  const std::uint32_t size = request.page_size();
  if (size > limits.collections_page_max) {
    return Refuse(FieldPath{"page_size"}, "{}; give 1 to {}, or 0 for {}", base::Grouped(size),
                  base::Grouped(limits.collections_page_max), kCollectionsPageDefault);
  }
  return size == 0 ? std::min(kCollectionsPageDefault, limits.collections_page_max) : size;
}

// A page ends early when the next collection would make the response too large.
absl::Status FillPage(const CollectionParts& parts, Call& call,
                      const v1::ListCollectionsRequest& request,
                      v1::ListCollectionsResponse& response) {
  const absl::StatusOr<std::uint32_t> page_size = ValidatePageSize(request, parts.limits);
  if (!page_size.ok()) return page_size.status();
  const absl::StatusOr<std::string> after = ReadCollectionPageToken(request.page_token());
  if (!after.ok()) return after.status();
  FillBackend(parts.backend, call.access(), *response.mutable_backend());
  base::LongWork work = MakeLongWork(call, parts.clock, kCollectionsStep);
  absl::Status filled;
  // The bytes of the response without collections, with space for the page token.
  std::uint64_t bytes = response.ByteSizeLong() + 2 * parts.limits.collection_name_bytes_max;
  parts.collections.ForEach(call.access(), *after, [&](const PermittedStatus& status) {
    const int count = response.collections_size();
    bool is_full = count == static_cast<int>(*page_size);
    if (!is_full) {
      v1::Collection& collection = *response.add_collections();
      filled = Describe(parts, status, work, collection);
      if (!filled.ok()) return false;
      constexpr std::uint64_t kLengthBytes = 8;
      bytes += collection.ByteSizeLong() + kLengthBytes;
      is_full = bytes > parts.limits.reply_bytes_default && count > 0;
      if (is_full) response.mutable_collections()->RemoveLast();
    }
    if (is_full) {
      response.set_next_page_token(
          WriteCollectionPageToken(response.collections(count - 1).name()));
    }
    return !is_full;
  });
  return filled;
}

// The snapshot whose fields are described.
// Errors: INVALID_FIELD; PERMISSION_DENIED; those of ServedSnapshots::Pin; SNAPSHOT_MISMATCH.
absl::StatusOr<PermittedSnapshot> SnapshotToDescribe(const CollectionParts& parts, Call& call,
                                                     const v1::DescribeFieldsRequest& request) {
  absl::Status named = CheckCollectionName({"collection"}, request.collection(), parts.limits);
  if (!named.ok()) return named;
  const auto collection = call.access().Permit(request.collection());
  if (!collection.ok()) return collection.status();
  auto snapshot = parts.collections.snapshots().Pin(*collection);
  if (!snapshot.ok()) return snapshot;
  absl::Status expected =
      CheckSnapshotId(FieldPath{"expected_snapshot_id"}, request.expected_snapshot_id(),
                      collection->name(), snapshot->id());
  if (!expected.ok()) return expected;
  return snapshot;
}

absl::Status DescribeFields(const CollectionParts& parts, Call& call,
                            const v1::DescribeFieldsRequest& request,
                            v1::DescribeFieldsResponse& response) {
  const Limits& limits = parts.limits;
  const std::uint32_t values_max =
      request.has_values_max() ? request.values_max() : kFieldValuesDefault;
  if (values_max > limits.field_values_max) {
    return Refuse(FieldPath{"values_max"}, "{}; give 0 to {}", base::Grouped(values_max),
                  base::Grouped(limits.field_values_max));
  }
  const auto permitted = SnapshotToDescribe(parts, call, request);
  if (!permitted.ok()) return permitted.status();
  base::LongWork work = MakeLongWork(call, parts.clock, "the fields were described");
  const auto own = permitted->Own(work);
  if (!own.ok()) return own.status();
  std::uint64_t bytes = 0;
  for (const filter::Field& field : own->rows.fields().fields()) {
    if (!request.field().empty() && field.name != request.field()) continue;
    v1::FieldDescription& message = *response.add_fields();
    absl::Status status = FillDescription(*own, field, values_max, work, message);
    if (!status.ok()) return status;
    bytes += message.ByteSizeLong();
    if (bytes > limits.reply_bytes_default) {
      return ReplyTooLargeToBuild(bytes, limits.reply_bytes_default, kFewerValues);
    }
  }
  if (!request.field().empty() && response.fields().empty()) {
    return base::Error(
        base::ErrorReason::kUnknownPayloadField,
        filter::UnknownField(request.collection(), request.field(), own->rows.fields()), "field");
  }
  response.set_rows(CountRows(*own));
  response.set_snapshot_id(permitted->id());
  response.set_snapshot_version(permitted->version());
  return absl::OkStatus();
}

}  // namespace

void HandleListCollections(const CollectionParts& parts, Call& call,
                           const v1::ListCollectionsRequest& request,
                           v1::ListCollectionsResponse& response) {
  call.Finish(Guarded([&] { return FillPage(parts, call, request, response); }));
}

void HandleGetCollection(const CollectionParts& parts, Call& call,
                         const v1::GetCollectionRequest& request,
                         v1::GetCollectionResponse& response) {
  call.Finish(Guarded([&] {
    absl::Status named = CheckCollectionName({"collection"}, request.collection(), parts.limits);
    if (!named.ok()) return named;
    const auto collection = call.access().Permit(request.collection());
    if (!collection.ok()) return collection.status();
    const auto status = parts.collections.Status(*collection);
    if (!status.ok()) return status.status();
    FillBackend(parts.backend, call.access(), *response.mutable_backend());
    base::LongWork work = MakeLongWork(call, parts.clock, kCollectionsStep);
    return Describe(parts, *status, work, *response.mutable_collection());
  }));
}

void HandleDescribeFields(const CollectionParts& parts, Call& call,
                          const v1::DescribeFieldsRequest& request,
                          v1::DescribeFieldsResponse& response) {
  call.SetReplyLimit(parts.limits.reply_bytes_default, kFewerValues);
  call.Finish(Guarded([&] { return DescribeFields(parts, call, request, response); }));
}

void HandleLoad(const CollectionParts& parts, ProgressCall<v1::LoadCollectionResponse>& call,
                const v1::LoadCollectionRequest& request) {
  StartChange(parts, call, [&] {
    ChangeRequest change;
    change.kind = ChangeKind::kLoad;
    change.collection = request.collection();
    change.folder.path = request.folder();
    return change;
  });
}

void HandleReload(const CollectionParts& parts, ProgressCall<v1::ReloadCollectionResponse>& call,
                  const v1::ReloadCollectionRequest& request) {
  StartChange(parts, call, [&] {
    ChangeRequest change = MakeReplacement(ChangeKind::kReload, request);
    change.folder.path = request.folder();
    if (request.has_min_overlap()) change.min_overlap = request.min_overlap();
    return change;
  });
}

void HandleRollback(const CollectionParts& parts,
                    ProgressCall<v1::RollbackCollectionResponse>& call,
                    const v1::RollbackCollectionRequest& request) {
  StartChange(parts, call, [&] { return MakeReplacement(ChangeKind::kRollback, request); });
}

void HandleUnload(const CollectionParts& parts, Call& call,
                  const v1::UnloadCollectionRequest& request) {
  call.Finish(Guarded([&] {
    const ChangeAudit audit(parts.audit, call, request.collection());
    const auto collection = call.access().Permit(request.collection());
    if (collection.ok()) {
      return parts.collections.Unload(*collection, request.expected_snapshot_id(), audit);
    }
    audit.Ended(collection.status());
    return collection.status();
  }));
}

}  // namespace simile::service
