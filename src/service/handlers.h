#pragma once

#include "engine/queue/executor.h"
#include "observe/audit_log.h"
#include "observe/metrics.h"
#include "service/access/served_snapshots.h"
#include "service/calls/call.h"
#include "service/changes/served_collections.h"
#include "service/export_run.h"
#include "service/replies/collection_message.h"
#include "service/search_pipeline.h"
#include "simile/clock.h"
#include "simile/limits.h"

namespace simile::v1 {
class DescribeFieldsRequest;
class DescribeFieldsResponse;
class ExplainRequest;
class FetchRequest;
class GetCollectionRequest;
class GetCollectionResponse;
class ListCollectionsRequest;
class ListCollectionsResponse;
class LoadCollectionRequest;
class LoadCollectionResponse;
class LookupRequest;
class RecommendRequest;
class ReloadCollectionRequest;
class ReloadCollectionResponse;
class RollbackCollectionRequest;
class RollbackCollectionResponse;
class SearchRequest;
class UnloadCollectionRequest;
}  // namespace simile::v1

namespace simile::service {

// The methods of SearchService. None throws; each finishes its call now or later.
void HandleSearch(const SearchPipeline& pipeline, Call& call, const v1::SearchRequest& request);
void HandleRecommend(const SearchPipeline& pipeline, Call& call,
                     const v1::RecommendRequest& request);
// Answers the part that ExportRun::MakePart has made.
void HandleExport(const SearchPipeline& pipeline, Call& call, const ExportRun& run);
void HandleExplain(const SearchPipeline& pipeline, Call& call, const v1::ExplainRequest& request);

// What the handlers of LookupService use. Owned by wiring.
struct LookupParts {
  const Clock& clock;
  const ServedSnapshots& snapshots;
  const Limits& limits;
  observe::Metrics& metrics;
};

// The methods of LookupService. Neither throws; both finish their call before they return.
void HandleFetch(const LookupParts& parts, Call& call, const v1::FetchRequest& request);
void HandleLookup(const LookupParts& parts, Call& call, const v1::LookupRequest& request);

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
