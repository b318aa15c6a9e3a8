#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <absl/status/status.h>

#include "service/calls/call.h"
#include "service/calls/caller_shares.h"

namespace grpc::health::v1 {
class HealthCheckRequest;
class HealthCheckResponse;
}  // namespace grpc::health::v1

namespace simile::service {

// The name under which grpc.health.v1.Health says whether the process answers at all: SERVING from
// the first connection to the end, also while collections load and while the server drains. Not for
// routing calls.
inline constexpr char kLivenessName[] = "liveness";

// What the health of the server as a whole says, and why.
enum class ServingState : std::uint8_t { kStarting, kServing, kDraining };

// The state that grpc.health.v1.Health reports of the server as a whole, of each collection, and of
// liveness. The server as a whole starts as NOT_SERVING. Owned by wiring; outlives the server. Safe
// to use from any thread.
class Health {
 public:
  using Request = grpc::health::v1::HealthCheckRequest;
  using Response = grpc::health::v1::HealthCheckResponse;
  using WatchCall = ProgressCall<Response>;

  Health();
  ~Health();

  // Set the state of the server as a whole, and of one collection. Both stay NOT_SERVING after
  // AnnounceDrain.
  void SetServing(bool serving);
  void SetCollectionServing(const std::string& collection, bool serving);
  ServingState state() const;
  // Sets everything but liveness to NOT_SERVING from now on. Returns whether any of this was
  // SERVING. Idempotent.
  bool AnnounceDrain();
  // Ends every watch, and refuses new ones with STOPPING from now on.
  void EndWatches();

  // The methods of grpc.health.v1.Health. Neither throws; Check finishes its call before it
  // returns, Watch when its caller leaves.
  // Errors: kInvalidField for a name that no collection can have.
  //   Check  kCollectionNotFound for a name that was never set
  //   Watch  kQueueFull when very many calls watch, or many of this caller; kStopping
  void Check(Call& call, const Request& request, Response& response) const;
  void Watch(WatchCall& call, const Request& request);

 private:
  struct Watcher;
  using Watchers = std::list<std::shared_ptr<Watcher>>;

  absl::Status Add(const std::shared_ptr<Watcher>& watcher);
  // Ends the watch of a caller that has left.
  void Leave(const Watcher* watcher);
  // REQUIRES of both: mutex_ is held.
  void Set(const std::string& name, bool serving);
  Response MakeResponse(const std::string& name) const;

  mutable std::mutex mutex_;                // guards the members below
  std::map<std::string, bool> is_serving_;  // by name, liveness included
  bool draining_ = false;
  bool watches_ended_ = false;
  Watchers watchers_;
  CallerShares places_;  // of watchers
};

}  // namespace simile::service
