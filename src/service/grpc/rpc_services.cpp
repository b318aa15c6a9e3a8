#include "service/grpc/rpc_services.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <utility>

#include <google/protobuf/stubs/logging.h>
#include "base/threads.h"
#include "grpc/health/v1/health.pb.h"
#include "service/admin_handlers.h"
#include "service/changes/served_collections.h"
#include "service/grpc/method.h"
#include "service/grpc/progress_stream.h"
#include "service/grpc/unary_call.h"
#include "service/handlers.h"
#include "service/search_pipeline.h"
#include "simile/v1/admin.pb.h"
#include "simile/v1/collections.pb.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

using Methods = std::vector<std::unique_ptr<Method>>;

std::uint64_t RandomSeed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

// One running worker a processor, at least two: not all work asks for turns. kPausedMax more calls
// may be begun and paused. One caller may hold half of these, so its long calls delay nobody else.
ResolveWorkers::Options WorkerOptions(const Limits& limits) {
  constexpr std::size_t kPausedMax = 32;
  ResolveWorkers::Options options;
  options.running_max = std::max<std::size_t>(2, base::UsableCpuCount());
  options.begun_max = options.running_max + kPausedMax;
  options.waiting_bytes_max = limits.resolve_bytes_max;
  options.begun_bytes_max = limits.resolve_bytes_max;
  return options;
}

template <class... Rows>
Methods MakeTable(Rows... rows) {
  Methods methods;
  (methods.push_back(std::move(rows)), ...);
  return methods;
}

Methods SearchMethods(RpcEnvironment& environment, const ServedSnapshots& snapshots,
                      const SearchPipeline& pipeline) {
  return MakeTable(
      Unary<v1::SearchRequest>(
          environment, {"/simile.v1.SearchService/Search", Role::kRead, Runs::kOnLoop},
          [&](Call& call, const auto& request) { HandleSearch(pipeline, call, request); }),
      Unary<v1::RecommendRequest>(
          environment, {"/simile.v1.SearchService/Recommend", Role::kRead, Runs::kOnLoop},
          [&](Call& call, const auto& request) { HandleRecommend(pipeline, call, request); }),
      SearchStreamMethod(environment,
                         {"/simile.v1.SearchService/SearchStream", Role::kRead, Runs::kOnLoop},
                         pipeline),
      Unary<v1::ExplainRequest>(
          environment, {"/simile.v1.SearchService/Explain", Role::kRead, Runs::kOnLoop},
          [&](Call& call, const auto& request) { HandleExplain(pipeline, call, request); }),
      ExportMethod(environment, {"/simile.v1.SearchService/Export", Role::kRead},
                   {snapshots, pipeline}));
}

Methods CollectionMethods(RpcEnvironment& environment, const CollectionParts& parts) {
  return MakeTable(
      Unary<v1::ListCollectionsRequest, v1::ListCollectionsResponse>(
          environment, {"/simile.v1.CollectionService/ListCollections", Role::kRead},
          [&](Call& call, const auto& request, auto& response) {
            HandleListCollections(parts, call, request, response);
          }),
      Unary<v1::GetCollectionRequest, v1::GetCollectionResponse>(
          environment, {"/simile.v1.CollectionService/GetCollection", Role::kRead},
          [&](Call& call, const auto& request, auto& response) {
            HandleGetCollection(parts, call, request, response);
          }),
      Unary<v1::DescribeFieldsRequest, v1::DescribeFieldsResponse>(
          environment, {"/simile.v1.CollectionService/DescribeFields", Role::kRead},
          [&](Call& call, const auto& request, auto& response) {
            HandleDescribeFields(parts, call, request, response);
          }),
      Progress<v1::LoadCollectionRequest, v1::LoadCollectionResponse>(
          environment, {"/simile.v1.CollectionService/LoadCollection", Role::kWrite},
          [&](auto& call, const auto& request) { HandleLoad(parts, call, request); }),
      Progress<v1::ReloadCollectionRequest, v1::ReloadCollectionResponse>(
          environment, {"/simile.v1.CollectionService/ReloadCollection", Role::kWrite},
          [&](auto& call, const auto& request) { HandleReload(parts, call, request); }),
      Progress<v1::RollbackCollectionRequest, v1::RollbackCollectionResponse>(
          environment, {"/simile.v1.CollectionService/RollbackCollection", Role::kWrite},
          [&](auto& call, const auto& request) { HandleRollback(parts, call, request); }),
      Unary<v1::UnloadCollectionRequest, v1::UnloadCollectionResponse>(
          environment, {"/simile.v1.CollectionService/UnloadCollection", Role::kWrite},
          [&](Call& call, const auto& request, auto& /*response*/) {
            HandleUnload(parts, call, request);
          }));
}

Methods LookupMethods(RpcEnvironment& environment, const LookupParts& parts) {
  return MakeTable(
      Unary<v1::FetchRequest>(
          environment, {"/simile.v1.LookupService/Fetch", Role::kRead, Runs::kOnWorker},
          [&](Call& call, const auto& request) { HandleFetch(parts, call, request); }),
      Unary<v1::LookupRequest>(
          environment, {"/simile.v1.LookupService/Lookup", Role::kRead, Runs::kOnWorker},
          [&](Call& call, const auto& request) { HandleLookup(parts, call, request); }));
}

Methods AdminMethods(RpcEnvironment& environment, const AdminParts& parts) {
  return MakeTable(Unary<v1::GetServerInfoRequest, v1::GetServerInfoResponse>(
                       environment, {"/simile.v1.AdminService/GetServerInfo", Role::kRead},
                       [&](Call& call, const auto& /*request*/, auto& response) {
                         HandleGetServerInfo(parts, call, response);
                       }),
                   Unary<v1::GetStatsRequest, v1::GetStatsResponse>(
                       environment, {"/simile.v1.AdminService/GetStats", Role::kAdmin},
                       [&](Call& call, const auto& /*request*/, auto& response) {
                         HandleGetStats(parts, call, response);
                       }),
                   Unary<v1::DiagnoseRequest, v1::DiagnoseResponse>(
                       environment, {"/simile.v1.AdminService/Diagnose", Role::kAdmin},
                       [&](Call& call, const auto& /*request*/, auto& response) {
                         HandleDiagnose(parts, call, response);
                       }));
}

// Calls of load balancers and orchestrators: they never wait behind a worker, and no line is
// written about them.
Methods HealthMethods(RpcEnvironment& environment, Health& health) {
  MethodRow check{
      .path = "/grpc.health.v1.Health/Check", .role = Role::kNone, .runs = Runs::kOnLoop};
  MethodRow watch{
      .path = "/grpc.health.v1.Health/Watch", .role = Role::kNone, .runs = Runs::kOnLoop};
  check.is_recorded = watch.is_recorded = false;
  return MakeTable(Unary<Health::Request, Health::Response>(
                       environment, check,
                       [&](Call& call, const auto& request, auto& response) {
                         health.Check(call, request, response);
                       }),
                   Progress<Health::Request, Health::Response>(
                       environment, watch,
                       [&](auto& call, const auto& request) { health.Watch(call, request); }));
}

// The library passes no context to its callback, so the logger is global. Null when there is no
// server.
std::atomic<const observe::Logger*> current_log = nullptr;

// protobuf only logs messages that it cannot parse. Such a message is its caller's error, and the
// call fails.
void LogProtobuf(google::protobuf::LogLevel /*level*/, const char* /*file*/, int /*line*/,
                 const std::string& message) {
  const observe::Logger* const log = current_log.load();
  if (log != nullptr) log->Debug("protobuf", {{"text", message}});
}

}  // namespace

class RpcServices::Impl {
 public:
  explicit Impl(const Parts& parts)
      : environment{parts.clock,
                    parts.log,
                    parts.failure_lines,
                    parts.audit,
                    parts.metrics,
                    parts.limits,
                    parts.access,
                    parts.log_requests,
                    RequestIds(RandomSeed()),
                    ResolveWorkers(WorkerOptions(parts.limits), parts.clock)},
        served(parts.store, parts.changes),
        pipeline({parts.clock, served.snapshots(), parts.executor, parts.metrics, parts.limits,
                  environment.workers}),
        collection_parts{parts.clock,    served,      parts.backend,
                         parts.executor, parts.audit, parts.limits},
        lookup_parts{parts.clock, served.snapshots(), parts.limits, parts.metrics},
        admin_parts(parts.admin),
        search(SearchMethods(environment, served.snapshots(), pipeline)),
        collections(CollectionMethods(environment, collection_parts)),
        lookup(LookupMethods(environment, lookup_parts)),
        admin(AdminMethods(environment, admin_parts)),
        health(HealthMethods(environment, parts.health)) {
    for (const Methods* const methods : {&search, &collections, &lookup, &admin, &health}) {
      for (const std::unique_ptr<Method>& method : *methods) all.push_back(method.get());
    }
    if (!parts.reflection) return;
    reflection = ReflectionMethods(all);
    for (const auto& method : reflection) all.push_back(method.get());
  }

  RpcEnvironment environment;
  const ServedCollections served;
  const SearchPipeline pipeline;
  const CollectionParts collection_parts;
  const LookupParts lookup_parts;
  const AdminParts admin_parts;
  const Methods search;
  const Methods collections;
  const Methods lookup;
  const Methods admin;
  const Methods health;
  std::vector<std::unique_ptr<net::RpcMethod>> reflection;
  std::vector<net::RpcMethod*> all;
};

RpcServices::RpcServices(const Parts& parts) : impl_(std::make_unique<Impl>(parts)) {}
RpcServices::~RpcServices() = default;

RpcServices::Counts RpcServices::counts() const {
  return {impl_->environment.unsent_replies->bytes(), impl_->environment.workers.counts()};
}

std::span<net::RpcMethod* const> RpcServices::methods() const { return impl_->all; }

LibraryLogs::LibraryLogs(const observe::Logger& log) {
  current_log = &log;
  google::protobuf::SetLogHandler(&LogProtobuf);
}

// The function stays installed, since other threads may be in it, but logs nothing.
LibraryLogs::~LibraryLogs() { current_log = nullptr; }

}  // namespace simile::service
