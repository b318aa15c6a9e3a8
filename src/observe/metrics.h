#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <absl/status/status.h>

#include "observe/build_info.h"
#include "simile/hits.h"
#include "simile/served_by.h"

namespace prometheus {
class Collectable;
}

namespace simile::observe {

// Why a call or a connection was rejected.
enum class Rejection : std::uint8_t {
  kQueueFull,    // too much work or too many unread replies wait, or no answer would be in time
  kDeadline,     // expired while waiting; nothing was computed
  kCancelled,    // the caller cancelled while it waited
  kDraining,     // the server is stopping
  kConnections,  // a connection beyond the server's maximum
  kConnectionsPerPeer,  // a connection beyond one address's maximum
  kDescriptors,         // a connection without a free file descriptor
  kReplyNotTaken,       // a call whose caller did not read the reply in time
  kFrameGuard,          // a connection that was cut for what its peer sent
  kUnfinishedBodies,    // a call whose request is too large, stalls or finds no space
  kCallerLimit,         // a call beyond what its caller may have under way
};

// The durations of the calls of one method, by status code. May be called from any thread.
class CallMetric {
 public:
  virtual ~CallMetric() = default;
  virtual void Record(absl::StatusCode code, std::chrono::nanoseconds duration) = 0;
};

// Counts and times what the server does. Label values are bounded: methods, status codes, reasons,
// backends; never an id. Built by wiring; all methods may be called from any thread and cost well
// under a microsecond for each label.
class Metrics {
 public:
  // Declares every metric, build information and process metrics included.
  explicit Metrics(const BuildInfo& build);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // rpc_server_call_duration_seconds{rpc_method,rpc_response_status_code} of a method. The
  // reference is valid as long as the metrics.
  //   rpc_method  "simile.v1.SearchService/Search": a method of the server, never a caller's text
  CallMetric& FindOrAddCalls(std::string_view rpc_method);
  // simile_requests_in_flight.
  void AddRequestsInFlight(int change);
  // One batch of a backend: simile_batch_size, simile_search_duration_seconds{backend} and, for
  // each of its calls, simile_queue_wait_seconds.
  void RecordBatch(std::string_view backend, std::uint32_t batch_size, std::uint64_t compute_us,
                   std::span<const std::uint64_t> queue_us);
  // A search that was answered: simile_queries_total{rpc_method}, simile_rescored_rows and
  // simile_rescans_total.
  //   rpc_method  as of FindOrAddCalls
  //   cost        of all its queries together
  void RecordAnswer(std::string_view rpc_method, std::size_t query_count, const QueryCost& cost);
  // simile_failed_queries_total{rpc_method}: queries of a partial call that were not answered.
  void CountFailedQueries(std::string_view rpc_method, std::size_t query_count);
  // simile_rejected_total{reason}.
  void CountRejected(Rejection reason);
  // simile_backend_active{backend}: 1 for this backend, 0 for the one that was active before.
  void SetBackendActive(std::string_view backend);
  // simile_queue_capacity: the queries that may wait.
  void SetQueueCapacity(std::uint32_t queries);
  // simile_gpu_requested: whether the configuration asks for a GPU.
  void SetGpuRequested(bool requested);
  // simile_gpu_lost_timestamp_seconds: when a GPU was lost, by this process or an earlier one.
  void SetGpuLostAt(std::chrono::system_clock::time_point time);
  // simile_fallback_total{reason}.
  void CountFallback(FallbackCause cause);
  // simile_device_errors_total{code}: the error code of the device's vendor.
  void CountDeviceError(int code);
  // simile_reload_total{result}: a load or reload that was published or failed.
  void CountReload(bool published);

  // Returns what an endpoint exposes.
  std::vector<std::shared_ptr<prometheus::Collectable>> Collectables() const;

 private:
  class Impl;  // keeps prometheus-cpp's headers out of this one
  std::unique_ptr<Impl> impl_;
};

}  // namespace simile::observe
