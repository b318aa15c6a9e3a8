#include "service/rpc_services.h"

#include <cstdint>
#include <random>

#include "service/admin_handlers.h"
#include "service/collection_handlers.h"
#include "service/grpc/progress_stream.h"
#include "service/grpc/search_stream.h"
#include "service/grpc/unary_call.h"
#include "service/lookup_handlers.h"
#include "service/rpc_environment.h"
#include "service/search_handlers.h"
#include "service/search_pipeline.h"
#include "simile/v1/admin.grpc.pb.h"
#include "simile/v1/collections.grpc.pb.h"
#include "simile/v1/lookup.grpc.pb.h"
#include "simile/v1/search.grpc.pb.h"

namespace simile::service {
namespace {

using Bytes = grpc::ByteBuffer;
using Context = grpc::CallbackServerContext;
using Unary = grpc::ServerUnaryReactor;
using Progress = grpc::ServerWriteReactor<Bytes>;

std::uint64_t RandomSeed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

// The services with raw methods, which get the bytes of requests: gRPC would answer bytes that it
// cannot parse as if the method were missing.
using RawSearchService = v1::SearchService::WithRawCallbackMethod_Search<
    v1::SearchService::WithRawCallbackMethod_Recommend<
        v1::SearchService::WithRawCallbackMethod_SearchStream<v1::SearchService::Service>>>;
using RawCollectionService = v1::CollectionService::WithRawCallbackMethod_ListCollections<
    v1::CollectionService::WithRawCallbackMethod_GetCollection<
        v1::CollectionService::WithRawCallbackMethod_DescribeFields<
            v1::CollectionService::WithRawCallbackMethod_LoadCollection<
                v1::CollectionService::WithRawCallbackMethod_ReloadCollection<
                    v1::CollectionService::WithRawCallbackMethod_RollbackCollection<
                        v1::CollectionService::WithRawCallbackMethod_UnloadCollection<
                            v1::CollectionService::Service>>>>>>>;
using RawLookupService = v1::LookupService::WithRawCallbackMethod_Fetch<
    v1::LookupService::WithRawCallbackMethod_Lookup<v1::LookupService::Service>>;
using RawAdminService = v1::AdminService::WithRawCallbackMethod_GetServerInfo<
    v1::AdminService::WithRawCallbackMethod_GetStats<
        v1::AdminService::WithRawCallbackMethod_Diagnose<v1::AdminService::Service>>>;

class SearchRpcs final : public RawSearchService {
 public:
  SearchRpcs(RpcEnvironment& environment, const SearchPipeline& pipeline)
      : environment_(environment), pipeline_(pipeline) {}

  Unary* Search(Context* context, const Bytes* request, Bytes* response) override {
    return UnaryCall::Start<v1::SearchRequest, v1::SearchResponse>(
        environment_, *context, "simile.v1.SearchService/Search", *request, *response,
        [this](Call& call, const auto& asked, auto& answer) {
          HandleSearch(pipeline_, call, asked, answer);
        });
  }
  Unary* Recommend(Context* context, const Bytes* request, Bytes* response) override {
    return UnaryCall::Start<v1::RecommendRequest, v1::RecommendResponse>(
        environment_, *context, "simile.v1.SearchService/Recommend", *request, *response,
        [this](Call& call, const auto& asked, auto& answer) {
          HandleRecommend(pipeline_, call, asked, answer);
        });
  }
  grpc::ServerBidiReactor<Bytes, Bytes>* SearchStream(Context* context) override {
    return service::SearchStream::Start(environment_, *context, pipeline_);
  }

 private:
  RpcEnvironment& environment_;
  const SearchPipeline& pipeline_;
};

class CollectionRpcs final : public RawCollectionService {
 public:
  CollectionRpcs(RpcEnvironment& environment, const CollectionParts& parts)
      : environment_(environment), parts_(parts) {}

  Unary* ListCollections(Context* context, const Bytes* request, Bytes* response) override {
    return UnaryCall::Start<v1::ListCollectionsRequest, v1::ListCollectionsResponse>(
        environment_, *context, "simile.v1.CollectionService/ListCollections", *request, *response,
        [this](Call& call, const auto& asked, auto& answer) {
          HandleListCollections(parts_, call, asked, answer);
        });
  }
  Unary* GetCollection(Context* context, const Bytes* request, Bytes* response) override {
    return UnaryCall::Start<v1::GetCollectionRequest, v1::GetCollectionResponse>(
        environment_, *context, "simile.v1.CollectionService/GetCollection", *request, *response,
        [this](Call& call, const auto& asked, auto& answer) {
          HandleGetCollection(parts_, call, asked, answer);
        });
  }
  Unary* DescribeFields(Context* context, const Bytes* request, Bytes* response) override {
    return UnaryCall::Start<v1::DescribeFieldsRequest, v1::DescribeFieldsResponse>(
        environment_, *context, "simile.v1.CollectionService/DescribeFields", *request, *response,
        [this](Call& call, const auto& asked, auto& answer) {
          HandleDescribeFields(parts_, call, asked, answer);
        });
  }
  Progress* LoadCollection(Context* context, const Bytes* request) override {
    return ProgressStream<v1::LoadCollectionRequest, v1::LoadCollectionResponse>::Start(
        environment_, *context, "simile.v1.CollectionService/LoadCollection", *request,
        [this](auto& call, const auto& asked) { HandleLoad(parts_, call, asked); });
  }
  Progress* ReloadCollection(Context* context, const Bytes* request) override {
    return ProgressStream<v1::ReloadCollectionRequest, v1::ReloadCollectionResponse>::Start(
        environment_, *context, "simile.v1.CollectionService/ReloadCollection", *request,
        [this](auto& call, const auto& asked) { HandleReload(parts_, call, asked); });
  }
  Progress* RollbackCollection(Context* context, const Bytes* request) override {
    return ProgressStream<v1::RollbackCollectionRequest, v1::RollbackCollectionResponse>::Start(
        environment_, *context, "simile.v1.CollectionService/RollbackCollection", *request,
        [this](auto& call, const auto& asked) { HandleRollback(parts_, call, asked); });
  }
  Unary* UnloadCollection(Context* context, const Bytes* request, Bytes* response) override {
    return UnaryCall::Start<v1::UnloadCollectionRequest, v1::UnloadCollectionResponse>(
        environment_, *context, "simile.v1.CollectionService/UnloadCollection", *request, *response,
        [this](Call& call, const auto& asked, auto& /*answer*/) {
          HandleUnload(parts_, call, asked);
        });
  }

 private:
  RpcEnvironment& environment_;
  const CollectionParts parts_;
};

class LookupRpcs final : public RawLookupService {
 public:
  LookupRpcs(RpcEnvironment& environment, const LookupParts& parts)
      : environment_(environment), parts_(parts) {}

  Unary* Fetch(Context* context, const Bytes* request, Bytes* response) override {
    return UnaryCall::Start<v1::FetchRequest, v1::FetchResponse>(
        environment_, *context, "simile.v1.LookupService/Fetch", *request, *response,
        [this](Call& call, const auto& asked, auto& answer) {
          HandleFetch(parts_, call, asked, answer);
        });
  }
  Unary* Lookup(Context* context, const Bytes* request, Bytes* response) override {
    return UnaryCall::Start<v1::LookupRequest, v1::LookupResponse>(
        environment_, *context, "simile.v1.LookupService/Lookup", *request, *response,
        [this](Call& call, const auto& asked, auto& answer) {
          HandleLookup(parts_, call, asked, answer);
        });
  }

 private:
  RpcEnvironment& environment_;
  const LookupParts parts_;
};

class AdminRpcs final : public RawAdminService {
 public:
  AdminRpcs(RpcEnvironment& environment, const AdminParts& parts)
      : environment_(environment), parts_(parts) {}

  Unary* GetServerInfo(Context* context, const Bytes* request, Bytes* response) override {
    return UnaryCall::Start<v1::GetServerInfoRequest, v1::GetServerInfoResponse>(
        environment_, *context, "simile.v1.AdminService/GetServerInfo", *request, *response,
        [this](Call& call, const auto& /*asked*/, auto& answer) {
          HandleGetServerInfo(parts_, call, answer);
        });
  }
  Unary* GetStats(Context* context, const Bytes* request, Bytes* response) override {
    return UnaryCall::Start<v1::GetStatsRequest, v1::GetStatsResponse>(
        environment_, *context, "simile.v1.AdminService/GetStats", *request, *response,
        [this](Call& call, const auto& /*asked*/, auto& answer) {
          HandleGetStats(parts_, call, answer);
        });
  }
  Unary* Diagnose(Context* context, const Bytes* request, Bytes* response) override {
    return UnaryCall::Start<v1::DiagnoseRequest, v1::DiagnoseResponse>(
        environment_, *context, "simile.v1.AdminService/Diagnose", *request, *response,
        [this](Call& call, const auto& /*asked*/, auto& answer) {
          HandleDiagnose(parts_, call, answer);
        });
  }

 private:
  RpcEnvironment& environment_;
  const AdminParts parts_;
};

}  // namespace

class RpcServices::Impl {
 public:
  explicit Impl(const Parts& parts)
      : environment{parts.clock,
                    parts.log,
                    parts.metrics,
                    parts.limits,
                    parts.log_requests,
                    RequestIds(RandomSeed()),
                    {}},
        pipeline({parts.clock, parts.store, parts.executor, parts.metrics, parts.limits}),
        search(environment, pipeline),
        collections(environment, {parts.store, parts.changes, parts.backend, parts.limits}),
        lookup(environment, {parts.store, parts.limits}),
        admin(environment, parts.admin) {}

  RpcEnvironment environment;
  const SearchPipeline pipeline;
  SearchRpcs search;
  CollectionRpcs collections;
  LookupRpcs lookup;
  AdminRpcs admin;
};

RpcServices::RpcServices(const Parts& parts) : impl_(std::make_unique<Impl>(parts)) {}
RpcServices::~RpcServices() = default;

std::vector<grpc::Service*> RpcServices::services() {
  return {&impl_->search, &impl_->collections, &impl_->lookup, &impl_->admin};
}

net::CallGate& RpcServices::gate() { return impl_->environment.gate; }

}  // namespace simile::service
