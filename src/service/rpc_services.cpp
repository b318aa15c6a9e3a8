#include "service/rpc_services.h"

#include <cstdint>
#include <random>

#include "service/collection_handlers.h"
#include "service/lookup_handlers.h"
#include "service/rpc_environment.h"
#include "service/search_handlers.h"
#include "service/search_pipeline.h"
#include "service/unary_reactor.h"
#include "simile/v1/collections.grpc.pb.h"
#include "simile/v1/lookup.grpc.pb.h"
#include "simile/v1/search.grpc.pb.h"

namespace simile::service {
namespace {

using Context = grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;

std::uint64_t RandomSeed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

class SearchRpcs final : public v1::SearchService::CallbackService {
 public:
  SearchRpcs(RpcEnvironment& environment, const SearchPipeline& pipeline)
      : environment_(environment), pipeline_(pipeline) {}

  Reactor* Search(Context* context, const v1::SearchRequest* request,
                  v1::SearchResponse* response) override {
    return UnaryReactor::Start(
        environment_, *context, "simile.v1.SearchService/Search",
        [&](Call& call) { HandleSearch(pipeline_, call, *request, *response); });
  }
  Reactor* Recommend(Context* context, const v1::RecommendRequest* request,
                     v1::RecommendResponse* response) override {
    return UnaryReactor::Start(
        environment_, *context, "simile.v1.SearchService/Recommend",
        [&](Call& call) { HandleRecommend(pipeline_, call, *request, *response); });
  }

 private:
  RpcEnvironment& environment_;
  const SearchPipeline& pipeline_;
};

class CollectionRpcs final : public v1::CollectionService::CallbackService {
 public:
  CollectionRpcs(RpcEnvironment& environment, const CollectionParts& parts)
      : environment_(environment), parts_(parts) {}

  Reactor* List(Context* context, const v1::ListCollectionsRequest* /*request*/,
                v1::ListCollectionsResponse* response) override {
    return UnaryReactor::Start(environment_, *context, "simile.v1.CollectionService/List",
                               [&](Call& call) { HandleList(parts_, call, *response); });
  }
  Reactor* Get(Context* context, const v1::GetCollectionRequest* request,
               v1::GetCollectionResponse* response) override {
    return UnaryReactor::Start(environment_, *context, "simile.v1.CollectionService/Get",
                               [&](Call& call) { HandleGet(parts_, call, *request, *response); });
  }
  Reactor* DescribeFields(Context* context, const v1::DescribeFieldsRequest* request,
                          v1::DescribeFieldsResponse* response) override {
    return UnaryReactor::Start(
        environment_, *context, "simile.v1.CollectionService/DescribeFields",
        [&](Call& call) { HandleDescribeFields(parts_, call, *request, *response); });
  }
  Reactor* Load(Context* context, const v1::LoadCollectionRequest* request,
                v1::LoadCollectionResponse* response) override {
    return UnaryReactor::Start(environment_, *context, "simile.v1.CollectionService/Load",
                               [&](Call& call) { HandleLoad(parts_, call, *request, *response); });
  }
  Reactor* Reload(Context* context, const v1::ReloadCollectionRequest* request,
                  v1::ReloadCollectionResponse* response) override {
    return UnaryReactor::Start(
        environment_, *context, "simile.v1.CollectionService/Reload",
        [&](Call& call) { HandleReload(parts_, call, *request, *response); });
  }
  Reactor* Unload(Context* context, const v1::UnloadCollectionRequest* request,
                  v1::UnloadCollectionResponse* /*response*/) override {
    return UnaryReactor::Start(environment_, *context, "simile.v1.CollectionService/Unload",
                               [&](Call& call) { HandleUnload(parts_, call, *request); });
  }

 private:
  RpcEnvironment& environment_;
  const CollectionParts parts_;
};

class LookupRpcs final : public v1::LookupService::CallbackService {
 public:
  LookupRpcs(RpcEnvironment& environment, const LookupParts& parts)
      : environment_(environment), parts_(parts) {}

  Reactor* Fetch(Context* context, const v1::FetchRequest* request,
                 v1::FetchResponse* response) override {
    return UnaryReactor::Start(environment_, *context, "simile.v1.LookupService/Fetch",
                               [&](Call& call) { HandleFetch(parts_, call, *request, *response); });
  }
  Reactor* Lookup(Context* context, const v1::LookupRequest* request,
                  v1::LookupResponse* response) override {
    return UnaryReactor::Start(
        environment_, *context, "simile.v1.LookupService/Lookup",
        [&](Call& call) { HandleLookup(parts_, call, *request, *response); });
  }

 private:
  RpcEnvironment& environment_;
  const LookupParts parts_;
};

}  // namespace

class RpcServices::Impl {
 public:
  explicit Impl(const Parts& parts)
      : environment{parts.clock,
                    parts.log,
                    parts.metrics,
                    parts.log_requests,
                    RequestIds(RandomSeed()),
                    {}},
        pipeline({parts.clock, parts.store, parts.executor, parts.metrics, parts.limits}),
        search(environment, pipeline),
        collections(environment, {parts.store, parts.changes, parts.backend, parts.limits}),
        lookup(environment, {parts.store, parts.limits}) {}

  RpcEnvironment environment;
  const SearchPipeline pipeline;
  SearchRpcs search;
  CollectionRpcs collections;
  LookupRpcs lookup;
};

RpcServices::RpcServices(const Parts& parts) : impl_(std::make_unique<Impl>(parts)) {}
RpcServices::~RpcServices() = default;

std::vector<grpc::Service*> RpcServices::services() {
  return {&impl_->search, &impl_->collections, &impl_->lookup};
}

net::CallGate& RpcServices::gate() { return impl_->environment.gate; }

}  // namespace simile::service
