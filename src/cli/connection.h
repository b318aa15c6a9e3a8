#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <absl/status/statusor.h>

#include "simile/v1/collections.pb.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"

namespace simile::cli {

enum class Health : std::uint8_t { kServing, kNotServing };

// The calls this program makes to one server. Thread-safe. Connects at the first call. Keeps gRPC's
// headers out of the commands.
//
// Errors of every call: the server's own, with its code and message; kUnavailable when no server
// was reached; kDeadlineExceeded when the server did not answer within the timeout.
class Connection {
 public:
  //   address  HOST:PORT, or HOST for port 50051
  //   timeout  of each call; unset: no limit
  Connection(const std::string& address, std::optional<std::chrono::milliseconds> timeout);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const std::string& address() const;

  absl::StatusOr<v1::SearchResponse> Search(const v1::SearchRequest& request) const;
  absl::StatusOr<v1::RecommendResponse> Recommend(const v1::RecommendRequest& request) const;
  absl::StatusOr<v1::ListCollectionsResponse> List() const;
  absl::StatusOr<v1::Collection> Get(const std::string& name) const;
  absl::StatusOr<v1::DescribeFieldsResponse> DescribeFields(
      const v1::DescribeFieldsRequest& request) const;
  absl::StatusOr<v1::Collection> Load(const std::string& name, const std::string& folder) const;
  absl::StatusOr<v1::Collection> Reload(const std::string& name) const;
  absl::Status Unload(const std::string& name) const;
  absl::StatusOr<v1::FetchResponse> Fetch(const v1::FetchRequest& request) const;
  absl::StatusOr<v1::LookupResponse> Lookup(const v1::LookupRequest& request) const;

  // Whether the server, or one of its collections, answers queries (grpc.health.v1).
  //   collection  empty: the server
  // Errors: kNotFound for a collection it does not know.
  absl::StatusOr<Health> CheckHealth(const std::string& collection) const;

 private:
  struct Channel;
  const std::unique_ptr<Channel> channel_;
};

// The largest reply this program accepts, and asks the server to send.
inline constexpr int kReplyBytesMax = 64 << 20;

}  // namespace simile::cli
