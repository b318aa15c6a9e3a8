#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "observe/build_info.h"
#include "simile/hits.h"

namespace prometheus {
class Collectable;
}

namespace simile::observe {

// Why work was turned away.
enum class Rejection : std::uint8_t {
  kQueueFull,           // the executor's queue held its maximum
  kDeadline,            // expired while waiting; nothing was computed
  kCancelled,           // the caller went away while it waited
  kDraining,            // the server is stopping
  kConnections,         // a connection beyond the server's maximum
  kConnectionsPerPeer,  // a connection beyond one address's maximum
  kDescriptors,         // a connection for which no file descriptor was left
};

// Why the CPU did what the GPU was to do.
enum class Fallback : std::uint8_t {
  kOutOfMemory,  // a batch for which the device had no room
  kCallFailed,   // a batch or a collection at which a call failed
  kDeviceLost,   // everything, from then on
  kDoesNotFit,   // a collection for which the device had no room
};

// What the server counts and times. Labels are bounded: methods, status codes, reasons, backends;
// never an id. Built by wiring; all methods may be called from any thread and cost well under a
// microsecond per label.
class Metrics {
 public:
  // Declares every metric, build information and process metrics included.
  explicit Metrics(const BuildInfo& build);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // rpc_server_call_duration_seconds{rpc_method,rpc_response_status_code}.
  //   rpc_method   "simile.v1.SearchService/Search": one of the server's own, never a caller's text
  //   status_code  "OK", "NOT_FOUND", ...
  void RecordCall(std::string_view rpc_method, std::string_view status_code,
                  std::chrono::nanoseconds duration);
  // simile_requests_in_flight.
  void AddRequestsInFlight(int change);
  // One pass of a backend: simile_batch_size, simile_search_duration_seconds{backend} and, one
  // value a call, simile_queue_wait_seconds.
  void RecordBatch(std::string_view backend, std::uint32_t batch_size, std::uint64_t compute_us,
                   std::span<const std::uint64_t> queue_us);
  // simile_rescored_rows and simile_rescans_total, of one call.
  void RecordCost(const QueryCost& cost);
  // simile_rejected_total{reason}.
  void CountRejected(Rejection reason);
  // simile_backend_active{backend} is 1 for this one, and 0 for any that was active before.
  void SetBackendActive(std::string_view backend);
  // simile_gpu_requested: whether the configuration would have a GPU.
  void SetGpuRequested(bool requested);
  // simile_fallback_total{reason}.
  void CountFallback(Fallback reason);
  // simile_cuda_errors_total{code}: a cudaError_t.
  void CountCudaError(int code);
  // simile_reload_total{result}: a load or reload that was published, or not.
  void CountReload(bool published);

  // What an endpoint must expose.
  std::vector<std::shared_ptr<prometheus::Collectable>> Collectables() const;

 private:
  class Impl;  // keeps prometheus-cpp's headers out of everyone else's build
  std::unique_ptr<Impl> impl_;
};

}  // namespace simile::observe
