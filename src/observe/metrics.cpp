#include "observe/metrics.h"

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include "observe/process_metrics.h"

namespace simile::observe {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

// From less than a small scan takes to the longest deadline of a call.
const Buckets& SecondsBuckets() {
  static const Buckets buckets = {50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3,
                                  50e-3, 100e-3, 250e-3, 500e-3, 1,    2.5,    5,    10,    30};
  return buckets;
}
const Buckets& BatchBuckets() {
  static const Buckets buckets = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  return buckets;
}
const Buckets& RescoredBuckets() {
  static const Buckets buckets = {0, 10, 30, 100, 300, 1e3, 3e3, 1e4, 3e4, 1e5, 1e6};
  return buckets;
}

// By Rejection.
constexpr std::array kRejectionLabels = {
    "queue_full",           "deadline",    "cancelled",       "draining",    "connections",
    "connections_per_peer", "descriptors", "reply_not_taken", "frame_guard", "unfinished_bodies",
    "caller_limit"};
static_assert(kRejectionLabels.size() == static_cast<std::size_t>(Rejection::kCallerLimit) + 1);

template <class Builder>
auto& Declare(Builder builder, const char* name, const char* what, prometheus::Registry& registry) {
  return builder.Name(name).Help(what).Register(registry);
}

constexpr double kSecondsPerMicrosecond = 1e-6;

// The metrics of one method. The library's look-up makes a map of labels each time, so each metric
// is looked up once.
class MethodMetrics final : public CallMetric {
 public:
  MethodMetrics(std::string rpc_method, prometheus::Family<prometheus::Histogram>& calls,
                prometheus::Family<prometheus::Counter>& queries,
                prometheus::Family<prometheus::Counter>& failed)
      : rpc_method_(std::move(rpc_method)), calls_(calls), queries_(queries), failed_(failed) {}

  void Record(absl::StatusCode code, std::chrono::nanoseconds duration) override {
    ByCode(code).Observe(std::chrono::duration<double>(duration).count());
  }
  void CountQueries(std::size_t count) {
    Counted(query_counter_, queries_).Increment(static_cast<double>(count));
  }
  // Counts 0 as well: rate() needs the value before the first increment.
  void CountFailedQueries(std::size_t count) {
    Counted(failed_counter_, failed_).Increment(static_cast<double>(count));
  }

 private:
  static constexpr std::size_t kCodes =
      static_cast<std::size_t>(absl::StatusCode::kUnauthenticated) + 1;

  using CounterPlace = std::atomic<prometheus::Counter*>;

  prometheus::Counter& Counted(CounterPlace& place,
                               prometheus::Family<prometheus::Counter>& family) {
    prometheus::Counter* counter = place.load(std::memory_order_acquire);
    if (counter != nullptr) return *counter;
    counter = &family.Add({{"rpc_method", rpc_method_}});
    place.store(counter, std::memory_order_release);
    return *counter;
  }

  // Two threads that look it up at once find the same histogram.
  prometheus::Histogram& ByCode(absl::StatusCode code) {
    auto& place = histograms_.at(static_cast<std::size_t>(code));
    prometheus::Histogram* histogram = place.load(std::memory_order_acquire);
    if (histogram != nullptr) return *histogram;
    histogram = &calls_.Add(
        {{"rpc_method", rpc_method_}, {"rpc_response_status_code", absl::StatusCodeToString(code)}},
        SecondsBuckets());
    place.store(histogram, std::memory_order_release);
    return *histogram;
  }

  const std::string rpc_method_;
  prometheus::Family<prometheus::Histogram>& calls_;
  prometheus::Family<prometheus::Counter>& queries_;
  prometheus::Family<prometheus::Counter>& failed_;
  std::array<std::atomic<prometheus::Histogram*>, kCodes> histograms_{};
  CounterPlace query_counter_ = nullptr;
  CounterPlace failed_counter_ = nullptr;
};

}  // namespace

class Metrics::Impl {
 public:
  explicit Impl(const BuildInfo& build) {
    Declare(prometheus::BuildGauge(), "simile_build_info", "1, labelled with version and build.",
            *registry)
        .Add({{"version", std::string(build.version)}, {"build", std::string(build.build)}})
        .Set(1);
    // Exposes every counter from 0 on: rate() needs the value before the first increment.
    for (std::size_t i = 0; i < kRejectionLabels.size(); ++i) {
      rejections.at(i) = &rejected.Add({{"reason", kRejectionLabels.at(i)}});
    }
    for (const FallbackCause cause : kFallbackCauses) fallbacks.Add({{"reason", LabelOf(cause)}});
  }

  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  std::shared_ptr<prometheus::Collectable> process = MakeProcessCollector();

  prometheus::Family<prometheus::Histogram>& calls =
      Declare(prometheus::BuildHistogram(), "rpc_server_call_duration_seconds",
              "Duration of calls by method and status.", *registry);
  prometheus::Family<prometheus::Counter>& queries =
      Declare(prometheus::BuildCounter(), "simile_queries_total",
              "Queries that were answered, by method.", *registry);
  prometheus::Family<prometheus::Counter>& failed_queries =
      Declare(prometheus::BuildCounter(), "simile_failed_queries_total",
              "Queries of partial calls that were not answered, by method.", *registry);
  prometheus::Family<prometheus::Histogram>& searches =
      Declare(prometheus::BuildHistogram(), "simile_search_duration_seconds",
              "Duration of a backend's search of one batch.", *registry);
  prometheus::Family<prometheus::Counter>& rejected =
      Declare(prometheus::BuildCounter(), "simile_rejected_total",
              "Rejected calls and connections, by reason.", *registry);
  // By Rejection. Looked up once, like the counters of reloads: a look-up takes memory, and
  // counting must not fail.
  std::array<prometheus::Counter*, kRejectionLabels.size()> rejections{};
  prometheus::Family<prometheus::Counter>& reloads =
      Declare(prometheus::BuildCounter(), "simile_reload_total",
              "Loads and reloads of a collection, by result.", *registry);
  prometheus::Counter& reloads_published = reloads.Add({{"result", "published"}});
  prometheus::Counter& reloads_failed = reloads.Add({{"result", "failed"}});
  prometheus::Family<prometheus::Gauge>& backends =
      Declare(prometheus::BuildGauge(), "simile_backend_active", "1 for the backend that answers.",
              *registry);
  prometheus::Gauge& gpu_requested = Declare(prometheus::BuildGauge(), "simile_gpu_requested",
                                             "1 if the configuration asks for a GPU.", *registry)
                                         .Add({});
  prometheus::Gauge& gpu_lost_at =
      Declare(prometheus::BuildGauge(), "simile_gpu_lost_timestamp_seconds",
              "When a GPU was last lost, Unix time; 0 for never.", *registry)
          .Add({});
  prometheus::Family<prometheus::Counter>& fallbacks = Declare(
      prometheus::BuildCounter(), "simile_fallback_total",
      "Batches and collections that the CPU handled instead of the GPU, by reason.", *registry);
  prometheus::Family<prometheus::Counter>& device_errors =
      Declare(prometheus::BuildCounter(), "simile_device_errors_total",
              "Failed device calls, by the error code of the device's vendor.", *registry);
  prometheus::Gauge& in_flight = Declare(prometheus::BuildGauge(), "simile_requests_in_flight",
                                         "Calls being answered now.", *registry)
                                     .Add({});
  prometheus::Gauge& queue_capacity =
      Declare(prometheus::BuildGauge(), "simile_queue_capacity",
              "Queries that may wait; more are rejected.", *registry)
          .Add({});
  prometheus::Histogram& queue_wait =
      Declare(prometheus::BuildHistogram(), "simile_queue_wait_seconds",
              "Time from the arrival of a call to the start of its batch.", *registry)
          .Add({}, SecondsBuckets());
  prometheus::Histogram& batch_size =
      Declare(prometheus::BuildHistogram(), "simile_batch_size", "Queries of a batch.", *registry)
          .Add({}, BatchBuckets());
  prometheus::Histogram& rescored =
      Declare(prometheus::BuildHistogram(), "simile_rescored_rows",
              "Rows of a call that got a canonical score after a cheap one.", *registry)
          .Add({}, RescoredBuckets());
  prometheus::Counter& rescans =
      Declare(prometheus::BuildCounter(), "simile_rescans_total",
              "Searches repeated because the first one was not proven exact.", *registry)
          .Add({});

  MethodMetrics& FindOrAddMethod(std::string_view rpc_method) {
    const std::lock_guard lock(methods_mutex);
    const auto known = methods.find(rpc_method);
    if (known != methods.end()) return known->second;
    const std::string name(rpc_method);
    return methods.try_emplace(name, name, calls, queries, failed_queries).first->second;
  }

  std::mutex methods_mutex;  // guards methods, not what is in it
  std::map<std::string, MethodMetrics, std::less<>> methods;

  std::mutex active_mutex;  // guards active
  prometheus::Gauge* active = nullptr;
};

Metrics::Metrics(const BuildInfo& build) : impl_(std::make_unique<Impl>(build)) {}
Metrics::~Metrics() = default;

CallMetric& Metrics::FindOrAddCalls(std::string_view rpc_method) {
  return impl_->FindOrAddMethod(rpc_method);
}

void Metrics::AddRequestsInFlight(int change) { impl_->in_flight.Increment(change); }

void Metrics::RecordBatch(std::string_view backend, std::uint32_t batch_size,
                          std::uint64_t compute_us, std::span<const std::uint64_t> queue_us) {
  impl_->batch_size.Observe(batch_size);
  impl_->searches.Add({{"backend", std::string(backend)}}, SecondsBuckets())
      .Observe(static_cast<double>(compute_us) * kSecondsPerMicrosecond);
  for (const std::uint64_t wait_us : queue_us) {
    impl_->queue_wait.Observe(static_cast<double>(wait_us) * kSecondsPerMicrosecond);
  }
}

void Metrics::RecordAnswer(std::string_view rpc_method, std::size_t query_count,
                           const QueryCost& cost) {
  impl_->FindOrAddMethod(rpc_method).CountQueries(query_count);
  impl_->rescored.Observe(static_cast<double>(cost.rows_rescored));
  impl_->rescans.Increment(static_cast<double>(cost.rescans));
}

void Metrics::CountFailedQueries(std::string_view rpc_method, std::size_t query_count) {
  impl_->FindOrAddMethod(rpc_method).CountFailedQueries(query_count);
}

void Metrics::CountRejected(Rejection reason) {
  impl_->rejections.at(static_cast<std::size_t>(reason))->Increment();
}

void Metrics::SetBackendActive(std::string_view backend) {
  const std::lock_guard lock(impl_->active_mutex);
  if (impl_->active != nullptr) impl_->active->Set(0);
  impl_->active = &impl_->backends.Add({{"backend", std::string(backend)}});
  impl_->active->Set(1);
}

void Metrics::SetQueueCapacity(std::uint32_t queries) { impl_->queue_capacity.Set(queries); }

void Metrics::SetGpuRequested(bool requested) { impl_->gpu_requested.Set(requested ? 1 : 0); }

void Metrics::SetGpuLostAt(std::chrono::system_clock::time_point time) {
  impl_->gpu_lost_at.Set(std::chrono::duration<double>(time.time_since_epoch()).count());
}

void Metrics::CountFallback(FallbackCause cause) {
  impl_->fallbacks.Add({{"reason", LabelOf(cause)}}).Increment();
}

void Metrics::CountDeviceError(int code) {
  impl_->device_errors.Add({{"code", std::to_string(code)}}).Increment();
}

void Metrics::CountReload(bool published) {
  (published ? impl_->reloads_published : impl_->reloads_failed).Increment();
}

std::vector<std::shared_ptr<prometheus::Collectable>> Metrics::Collectables() const {
  return {impl_->registry, impl_->process};
}

}  // namespace simile::observe
