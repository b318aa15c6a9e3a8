#include "service/collection_handlers.h"

#include <utility>

#include "service/collection_name.h"
#include "service/guarded.h"
#include "simile/v1/collections.pb.h"

namespace simile::service {
namespace {

// Ends a Load or Reload: with the error, or with the collection as the change left it.
CollectionChanges::Done FinishWith(const CollectionParts& parts, Call& call,
                                   v1::Collection& message) {
  return [backend = &parts.backend, &call,
          &message](const absl::StatusOr<engine::SnapshotPtr>& published) {
    call.Finish(published.ok() ? Guarded([&] {
      const engine::Snapshot& snapshot = **published;
      FillCollection({snapshot.collection, engine::CollectionState::kServing, 1, *published},
                     *backend, message);
      return absl::OkStatus();
    })
                               : published.status());
  };
}

}  // namespace

void HandleList(const CollectionParts& parts, Call& call, v1::ListCollectionsResponse& response) {
  call.Finish(Guarded([&] {
    for (const engine::CollectionStatus& status : parts.store.List()) {
      FillCollection(status, parts.backend, *response.add_collections());
    }
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
