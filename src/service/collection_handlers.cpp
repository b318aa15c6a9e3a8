#include "service/collection_handlers.h"

#include <fmt/format.h>

#include "base/message_text.h"
#include "filter/field_summary.h"
#include "service/collection_name.h"
#include "service/guarded.h"
#include "simile/v1/collections.pb.h"

namespace simile::service {
namespace {

// Finishes a Load or Reload with the error, or with the published collection.
CollectionChanges::Done FinishWith(const CollectionParts& parts, Call& call,
                                   v1::Collection& message) {
  return [backend = &parts.backend, &call,
          &message](const absl::StatusOr<engine::SnapshotPtr>& published) {
    if (!published.ok()) return call.Finish(published.status());
    call.Finish(Guarded([&] {
      const engine::Snapshot& snapshot = **published;
      FillCollection({snapshot.collection, engine::CollectionState::kServing, 1, *published},
                     *backend, message);
      return absl::OkStatus();
    }));
  };
}

constexpr std::uint32_t kFieldValuesDefault = 5;

void FillDescription(const filter::Field& field, std::size_t values_max,
                     v1::FieldDescription& message) {
  FillField(field, *message.mutable_field());
  const filter::FieldSummary summary = filter::Summarize(field, values_max);
  message.set_distinct_values(summary.distinct_values);
  for (const filter::FieldSummary::Value& value : summary.most_common) {
    v1::ValueCount& count = *message.add_values();
    count.set_value(value.text);
    count.set_rows(value.rows);
  }
  message.set_least(summary.least);
  message.set_greatest(summary.greatest);
  message.set_bytes(field.bytes());
}

}  // namespace

void HandleList(const CollectionParts& parts, Call& call, v1::ListCollectionsResponse& response) {
  call.Finish(Guarded([&] {
    for (const engine::CollectionStatus& status : parts.store.List()) {
      FillCollection(status, parts.backend, *response.add_collections());
    }
    FillBackend(parts.backend, *response.mutable_backend());
    return absl::OkStatus();
  }));
}

void HandleGet(const CollectionParts& parts, Call& call, const v1::GetCollectionRequest& request,
               v1::GetCollectionResponse& response) {
  call.Finish(Guarded([&] {
    absl::Status named = CheckCollectionName("name", request.name(), parts.limits);
    if (!named.ok()) return named;
    const auto status = parts.store.Get(request.name());
    if (!status.ok()) return status.status();
    FillCollection(*status, parts.backend, *response.mutable_collection());
    FillBackend(parts.backend, *response.mutable_backend());
    return absl::OkStatus();
  }));
}

void HandleDescribeFields(const CollectionParts& parts, Call& call,
                          const v1::DescribeFieldsRequest& request,
                          v1::DescribeFieldsResponse& response) {
  call.Finish(Guarded([&] {
    absl::Status status = CheckCollectionName("collection", request.collection(), parts.limits);
    const std::uint32_t values_max =
        request.has_values_max() ? request.values_max() : kFieldValuesDefault;
    if (status.ok() && values_max > parts.limits.field_values_max) {
      status = absl::InvalidArgumentError(
          fmt::format("values_max: {}; give 0 to {}", base::Grouped(values_max),
                      base::Grouped(parts.limits.field_values_max)));
    }
    if (!status.ok()) return status;
    const auto snapshot = parts.store.Pin(request.collection());
    if (!snapshot.ok()) return snapshot.status();
    std::uint64_t bytes = 0;
    for (const filter::Field& field : (*snapshot)->filters->payload().fields()) {
      v1::FieldDescription& message = *response.add_fields();
      FillDescription(field, values_max, message);
      bytes += message.ByteSizeLong();
      if (bytes <= parts.limits.reply_bytes_default) continue;
      response.Clear();
      return absl::Status(absl::InvalidArgumentError(
          fmt::format("values_max: {} values of each field take more than {} bytes; ask for fewer",
                      base::Grouped(values_max), base::Grouped(parts.limits.reply_bytes_default))));
    }
    response.set_rows((*snapshot)->row_count());
    response.set_snapshot_version((*snapshot)->version);
    return absl::OkStatus();
  }));
}

void HandleLoad(const CollectionParts& parts, Call& call, const v1::LoadCollectionRequest& request,
                v1::LoadCollectionResponse& response) {
  parts.changes.Load(request.name(), request.folder(), call.cancelled(),
                     FinishWith(parts, call, *response.mutable_collection()));
}

void HandleReload(const CollectionParts& parts, Call& call,
                  const v1::ReloadCollectionRequest& request,
                  v1::ReloadCollectionResponse& response) {
  parts.changes.Reload(request.name(), call.cancelled(),
                       FinishWith(parts, call, *response.mutable_collection()));
}

void HandleUnload(const CollectionParts& parts, Call& call,
                  const v1::UnloadCollectionRequest& request) {
  call.Finish(Guarded([&] { return parts.changes.Unload(request.name()); }));
}

}  // namespace simile::service
