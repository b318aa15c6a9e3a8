#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include <absl/status/status.h>

#include "simile/v1/collections.pb.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"

namespace simile::integration {

// How a call ended.
struct Outcome {
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string message;
  std::map<std::string, std::string> trailers;

  bool ok() const { return code == absl::StatusCode::kOk; }
};
void PrintTo(const Outcome& outcome, std::ostream* out);

struct CallOptions {
  std::optional<std::chrono::milliseconds> timeout;
  std::map<std::string, std::string> metadata;
};

enum class Health { kServing, kNotServing, kUnknownService, kUnreachable };

// A gRPC client with a connection of its own. Only client.cpp includes gRPC's headers. Calls block;
// safe to use from several threads.
class Client {
 public:
  explicit Client(const std::string& address);
  ~Client();
  Client(Client&&) noexcept;

  Outcome Search(const v1::SearchRequest& request, v1::SearchResponse& response,
                 const CallOptions& options = {}) const;
  Outcome Recommend(const v1::RecommendRequest& request, v1::RecommendResponse& response,
                    const CallOptions& options = {}) const;
  Outcome List(v1::ListCollectionsResponse& response) const;
  Outcome Get(const std::string& name, v1::GetCollectionResponse& response) const;
  Outcome DescribeFields(const v1::DescribeFieldsRequest& request,
                         v1::DescribeFieldsResponse& response) const;
  Outcome Load(const std::string& name, const std::string& folder,
               v1::LoadCollectionResponse& response) const;
  Outcome Reload(const std::string& name, v1::ReloadCollectionResponse& response) const;
  Outcome Unload(const std::string& name) const;
  Outcome Fetch(const v1::FetchRequest& request, v1::FetchResponse& response) const;
  Outcome Lookup(const v1::LookupRequest& request, v1::LookupResponse& response) const;

  // A Search whose serialized request is `bytes`.
  Outcome SearchRaw(const std::string& bytes) const;
  // A Search that is cancelled at once, perhaps before the server receives it.
  Outcome SearchAndCancel(const v1::SearchRequest& request) const;
  // Whether the server offers grpc.reflection.v1alpha.
  Outcome TryReflection() const;

  //   service  a collection, or "" for the server as a whole
  Health CheckHealth(const std::string& service) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace simile::integration
