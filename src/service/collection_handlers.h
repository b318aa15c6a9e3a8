#pragma once

#include "engine/queue/executor.h"
#include "observe/audit_log.h"
#include "service/call.h"
#include "service/collection_message.h"
#include "service/served_collections.h"
#include "simile/clock.h"
#include "simile/limits.h"

namespace simile::v1 {
class DescribeFieldsRequest;
class DescribeFieldsResponse;
class GetCollectionRequest;
class GetCollectionResponse;
class ListCollectionsRequest;
class ListCollectionsResponse;
class LoadCollectionRequest;
class LoadCollectionResponse;
class ReloadCollectionRequest;
class ReloadCollectionResponse;
class RollbackCollectionRequest;
class RollbackCollectionResponse;
class UnloadCollectionRequest;
}  // namespace simile::v1

namespace simile::service {

// What the handlers of CollectionService use. Owned by wiring.
struct CollectionParts {
  const Clock& clock;
  const ServedCollections& collections;
  const ServingBackend& backend;
  const engine::Executor& executor;
  observe::AuditLog& audit;
  const Limits& limits;
};

// The methods of CollectionService. None throws. Load, Reload and Rollback send their progress, and
// finish their call when the change is made or refused; the others finish it before they return.
// REQUIRES: `parts` outlives the calls.
void HandleListCollections(const CollectionParts& parts, Call& call,
                           const v1::ListCollectionsRequest& request,
                           v1::ListCollectionsResponse& response);
void HandleGetCollection(const CollectionParts& parts, Call& call,
                         const v1::GetCollectionRequest& request,
                         v1::GetCollectionResponse& response);
void HandleDescribeFields(const CollectionParts& parts, Call& call,
                          const v1::DescribeFieldsRequest& request,
                          v1::DescribeFieldsResponse& response);
void HandleLoad(const CollectionParts& parts, ProgressCall<v1::LoadCollectionResponse>& call,
                const v1::LoadCollectionRequest& request);
void HandleReload(const CollectionParts& parts, ProgressCall<v1::ReloadCollectionResponse>& call,
                  const v1::ReloadCollectionRequest& request);
void HandleRollback(const CollectionParts& parts,
                    ProgressCall<v1::RollbackCollectionResponse>& call,
                    const v1::RollbackCollectionRequest& request);
void HandleUnload(const CollectionParts& parts, Call& call,
                  const v1::UnloadCollectionRequest& request);

}  // namespace simile::service
