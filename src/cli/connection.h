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

// A server and the calls this program makes to it, one at a time or from several threads. gRPC
// stays behind it. Nothing is sent before the first call.
//
// Errors of every call: the server's own, code and message as it sent them; kUnavailable in our
// words when no server was reached; kDeadlineExceeded when it did not answer within the timeout.
class Connection {
 public:
  // address: HOST:PORT, or HOST for the usual port. timeout: of each call; nothing: no limit.
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
  // Errors: kNotFound for a collection it does not know.
  absl::StatusOr<Health> CheckHealth(const std::string& collection) const;

 private:
  struct Channel;
  const std::unique_ptr<Channel> channel_;
};

// What this program lets an answer weigh, and asks the server to allow.
inline constexpr int kReplyBytesMax = 64 << 20;

}  // namespace simile::cli
