#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <absl/status/statusor.h>

#include "cli/client_security.h"
#include "simile/v1/admin.pb.h"
#include "simile/v1/collections.pb.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"

namespace simile::cli {

enum class Health : std::uint8_t { kServing, kNotServing };

struct CommandSpec;

// The calls that this program makes to one server. Thread-safe. Connects at the first call. Keeps
// gRPC's headers out of the commands.
// Errors of every call: the server's own, with its code, message and details (errors.h);
// kUnavailable if no server was reached; kDeadlineExceeded if the server did not answer within the
// timeout.
class Connection {
 public:
  //   address  HOST:PORT
  //   timeout  of each call; unset: no limit
  //   security how it connects command  errors name its flags instead of request fields
  //   (flag_names.h); borrowed; null: errors name fields timeout_is_default  whether the error of a
  //   call that takes longer calls the timeout a default
  Connection(const std::string& address, std::optional<std::chrono::milliseconds> timeout,
             const ClientSecurity& security = {}, const CommandSpec* command = nullptr,
             bool timeout_is_default = false);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const std::string& address() const;
  const ClientSecurity& security() const;

  absl::StatusOr<v1::SearchResponse> Search(const v1::SearchRequest& request) const;
  absl::StatusOr<v1::RecommendResponse> Recommend(const v1::RecommendRequest& request) const;
  absl::StatusOr<v1::ExplainResponse> Explain(const v1::ExplainRequest& request) const;
  // All collections; makes as many calls as there are pages.
  absl::StatusOr<v1::ListCollectionsResponse> List() const;
  absl::StatusOr<v1::Collection> Get(const std::string& name) const;
  absl::StatusOr<v1::DescribeFieldsResponse> DescribeFields(
      const v1::DescribeFieldsRequest& request) const;

  // The changes return the collection that is served afterwards. Until then they report progress on
  // the caller's thread. A lost connection does not stop a change.
  using OnProgress = std::function<void(const v1::ChangeProgress&)>;
  absl::StatusOr<v1::Collection> Load(const v1::LoadCollectionRequest& request,
                                      const OnProgress& on_progress) const;
  absl::StatusOr<v1::Collection> Reload(const v1::ReloadCollectionRequest& request,
                                        const OnProgress& on_progress) const;
  absl::StatusOr<v1::Collection> Rollback(const v1::RollbackCollectionRequest& request,
                                          const OnProgress& on_progress) const;
  absl::Status Unload(const v1::UnloadCollectionRequest& request) const;

  absl::StatusOr<v1::FetchResponse> Fetch(const v1::FetchRequest& request) const;
  absl::StatusOr<v1::LookupResponse> Lookup(const v1::LookupRequest& request) const;

  absl::StatusOr<v1::GetServerInfoResponse> GetServerInfo() const;
  // Errors of both: kPermissionDenied unless the server runs with --allow-admin and lets this
  // caller use it.
  absl::StatusOr<v1::GetStatsResponse> GetStats() const;
  absl::StatusOr<v1::DiagnoseResponse> Diagnose() const;

  // Whether a part of the server serves (grpc.health.v1).
  //   name  empty: queries of every collection; a collection's name: its queries; "liveness": the
  //         process
  // Errors: kNotFound for a name that the server does not know.
  absl::StatusOr<Health> CheckHealth(const std::string& name) const;

 private:
  struct Channel;
  const std::unique_ptr<Channel> channel_;
};

// The largest reply, in bytes, that this program accepts and lets the server send.
inline constexpr int kReplyBytesMax = 64 << 20;

}  // namespace simile::cli
