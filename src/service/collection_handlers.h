#pragma once

#include "engine/snapshots/snapshot_store.h"
#include "service/call.h"
#include "service/collection_changes.h"
#include "service/collection_message.h"
#include "simile/limits.h"

namespace simile::v1 {
class DescribeFieldsRequest;
class DescribeFieldsResponse;
class GetCollectionRequest;
class GetCollectionResponse;
class ListCollectionsResponse;
class LoadCollectionRequest;
class LoadCollectionResponse;
class ReloadCollectionRequest;
class ReloadCollectionResponse;
class UnloadCollectionRequest;
}  // namespace simile::v1

namespace simile::service {

// What the handlers of CollectionService use. Owned by wiring.
struct CollectionParts {
  const engine::SnapshotStore& store;
  CollectionChanges& changes;
  const ServingBackend& backend;
  const Limits& limits;
};

// The methods of CollectionService. None throws. Load and Reload finish their call when the change
// is made or refused, the others before they return.
void HandleList(const CollectionParts& parts, Call& call, v1::ListCollectionsResponse& response);
void HandleGet(const CollectionParts& parts, Call& call, const v1::GetCollectionRequest& request,
               v1::GetCollectionResponse& response);
void HandleDescribeFields(const CollectionParts& parts, Call& call,
                          const v1::DescribeFieldsRequest& request,
                          v1::DescribeFieldsResponse& response);
void HandleLoad(const CollectionParts& parts, Call& call, const v1::LoadCollectionRequest& request,
                v1::LoadCollectionResponse& response);
void HandleReload(const CollectionParts& parts, Call& call,
                  const v1::ReloadCollectionRequest& request,
                  v1::ReloadCollectionResponse& response);
void HandleUnload(const CollectionParts& parts, Call& call,
                  const v1::UnloadCollectionRequest& request);

}  // namespace simile::service
