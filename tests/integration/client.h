#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <absl/status/status.h>

#include "cli/client_security.h"
#include "simile/v1/admin.pb.h"
#include "simile/v1/collections.pb.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"

namespace google::rpc {
class Status;
}  // namespace google::rpc

namespace grpc {
class ClientContext;
class Status;
}  // namespace grpc

namespace simile::integration {

// How a call ended.
struct Outcome {
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string message;
  std::map<std::string, std::string> trailers;
  // From the details of an error; empty without them.
  std::string reason = {};  // of google.rpc.ErrorInfo
  std::string field = {};   // of google.rpc.BadRequest: which field is wrong

  bool ok() const { return code == absl::StatusCode::kOk; }
};
void PrintTo(const Outcome& outcome, std::ostream* out);
// The outcome of a request of a stream.
Outcome ReadOutcome(const v1::SearchStreamResponse& response);
// The outcome of a query of a partial call.
Outcome ReadOutcome(const google::rpc::Status& status);
// The outcome of a call. REQUIRES: the call of the context has ended with the status.
Outcome ReadOutcome(const grpc::Status& status, const grpc::ClientContext& context);

// What Load, Reload and Rollback send.
struct ChangeAnswer {
  std::vector<v1::ChangeProgress> progress;
  v1::Collection collection;  // what is served now
};
// Called with each progress; returns whether to stay. A caller that leaves cancels its call.
using OnProgress = std::function<bool(const v1::ChangeProgress& progress)>;

struct CallOptions {
  std::optional<std::chrono::milliseconds> timeout;
  std::map<std::string, std::string> metadata;
};

enum class Health : std::uint8_t { kServing, kNotServing, kUnknownService, kUnreachable };

// A gRPC client with a connection of its own. Keeps gRPC's headers out of the tests. Calls
// block; safe to use from several threads.
class Client {
 public:
  explicit Client(const std::string& address, const cli::ClientSecurity& security = {});
  ~Client();
  Client(Client&&) noexcept;

  Outcome Search(const v1::SearchRequest& request, v1::SearchResponse& response,
                 const CallOptions& options = {}) const;
  Outcome Recommend(const v1::RecommendRequest& request, v1::RecommendResponse& response,
                    const CallOptions& options = {}) const;
  // Sends all requests on one stream, then reads to its end.
  Outcome SearchStream(const std::vector<v1::SearchStreamRequest>& requests,
                       std::vector<v1::SearchStreamResponse>& responses,
                       const CallOptions& options = {}) const;
  Outcome Explain(const v1::ExplainRequest& request, v1::ExplainResponse& response) const;
  // Calls on_message with each message, which returns whether to stay: a caller that leaves cancels
  // its call.
  Outcome Export(const v1::ExportRequest& request,
                 const std::function<bool(const v1::ExportResponse&)>& on_message,
                 const CallOptions& options = {}) const;
  // Reads to the end of the stream.
  Outcome Export(const v1::ExportRequest& request,
                 std::vector<v1::ExportResponse>& responses) const;
  Outcome List(const v1::ListCollectionsRequest& request,
               v1::ListCollectionsResponse& response) const;
  Outcome List(v1::ListCollectionsResponse& response) const;  // the first page
  Outcome Get(const std::string& collection, v1::GetCollectionResponse& response) const;
  Outcome DescribeFields(const v1::DescribeFieldsRequest& request,
                         v1::DescribeFieldsResponse& response) const;

  Outcome Load(const v1::LoadCollectionRequest& request, ChangeAnswer& answer,
               const CallOptions& options = {}, const OnProgress& on_progress = {}) const;
  Outcome Load(const std::string& collection, const std::string& folder,
               ChangeAnswer& answer) const;
  Outcome Reload(const v1::ReloadCollectionRequest& request, ChangeAnswer& answer,
                 const CallOptions& options = {}, const OnProgress& on_progress = {}) const;
  Outcome Reload(const std::string& collection, ChangeAnswer& answer) const;
  Outcome Rollback(const v1::RollbackCollectionRequest& request, ChangeAnswer& answer,
                   const CallOptions& options = {}, const OnProgress& on_progress = {}) const;
  Outcome Rollback(const std::string& collection, ChangeAnswer& answer) const;
  Outcome Unload(const v1::UnloadCollectionRequest& request) const;
  Outcome Unload(const std::string& collection) const;

  Outcome Fetch(const v1::FetchRequest& request, v1::FetchResponse& response) const;
  Outcome Lookup(const v1::LookupRequest& request, v1::LookupResponse& response) const;
  Outcome GetServerInfo(v1::GetServerInfoResponse& response) const;
  Outcome GetStats(v1::GetStatsResponse& response) const;
  Outcome Diagnose(v1::DiagnoseResponse& response) const;

  // A Search whose serialized request is `bytes`.
  Outcome SearchRaw(const std::string& bytes) const;
  // A Search that is cancelled at once, perhaps before the server receives it.
  Outcome SearchAndCancel(const v1::SearchRequest& request) const;
  // The services that grpc.reflection.v1alpha lists.
  Outcome ListServices(std::vector<std::string>& services) const;

  //   service  a collection, "" for the server as a whole, or "liveness"
  Health CheckHealth(const std::string& service) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace simile::integration
