#include "cli/bench/comparison_run.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "cli/backend_text.h"
#include "cli/bench/median.h"
#include "cli/bench/random_draw.h"
#include "simile/limits.h"

namespace simile::cli::bench {
namespace {

constexpr std::uint32_t kSizes[] = {1, 10, 32, 100, 1'000};
constexpr std::uint32_t kQueriesOfSize = 2'000;  // in all calls of one size
constexpr std::uint32_t kCallsMin = 10;
constexpr std::uint32_t kCallsMax = 100;
constexpr std::uint32_t kUncountedCalls = 3;

// The calls of one size to one server.
class TimedServer {
 public:
  explicit TimedServer(const Connection& connection) : connection_(connection) {}

  absl::StatusOr<v1::SearchResponse> Ask(const v1::SearchRequest& request, bool counted) {
    const auto start = std::chrono::steady_clock::now();
    auto response = connection_.Search(request);
    const auto end = std::chrono::steady_clock::now();
    if (response.ok() && counted) {
      call_ms_.push_back(std::chrono::duration<double, std::milli>(end - start).count());
      compute_ms_.push_back(static_cast<double>(response->receipt().compute_us()) / 1e3);
    }
    return response;
  }

  ComparedTimes Times() const { return {Median(call_ms_), Median(compute_ms_)}; }

 private:
  const Connection& connection_;
  std::vector<double> call_ms_;
  std::vector<double> compute_ms_;
};

std::string HitText(const v1::SearchResult& result, int rank) {
  if (rank >= result.hits_size()) return "nothing";
  const v1::Hit& hit = result.hits(rank);
  return fmt::format("{} with {}", hit.id(), hit.score());
}

// Whether both have the same ids and bits of scores, in the same order.
absl::Status CheckEqual(const v1::SearchResponse& measured, const v1::SearchResponse& other) {
  for (int query = 0; query < measured.results_size(); ++query) {
    const v1::SearchResult& a = measured.results(query);
    const v1::SearchResult& b = other.results(query);
    for (int rank = 0; rank < std::max(a.hits_size(), b.hits_size()); ++rank) {
      if (rank < a.hits_size() && rank < b.hits_size() && a.hits(rank).id() == b.hits(rank).id() &&
          std::bit_cast<std::uint32_t>(a.hits(rank).score()) ==
              std::bit_cast<std::uint32_t>(b.hits(rank).score())) {
        continue;
      }
      return absl::DataLossError(
          fmt::format("the answers differ, so no times are printed: query {}, rank {}: {}, and on "
                      "the other server {}",
                      query, rank + 1, HitText(a, rank), HitText(b, rank)));
    }
  }
  return absl::OkStatus();
}

class ComparisonRun {
 public:
  ComparisonRun(const Connection& measured, const Connection& other, const QuerySamples& samples,
                bool other_is_cpu, Comparison& comparison)
      : measured_(measured),
        other_(other),
        samples_(samples),
        other_is_cpu_(other_is_cpu),
        comparison_(comparison) {}

  absl::Status MeasureSize(std::uint32_t queries) {
    TimedServer measured(measured_);
    TimedServer other(other_);
    const std::uint32_t calls = std::clamp(kQueriesOfSize / queries, kCallsMin, kCallsMax);
    for (std::uint32_t call = 0; call < kUncountedCalls + calls; ++call) {
      const bool counted = call >= kUncountedCalls;
      const v1::SearchRequest request = RequestOf(queries);
      // The first of the two has its request's bytes in no cache.
      const bool measured_first = call % 2 == 0;
      absl::StatusOr<v1::SearchResponse> first =
          (measured_first ? measured : other).Ask(request, counted);
      if (!first.ok()) return first.status();
      absl::StatusOr<v1::SearchResponse> second =
          (measured_first ? other : measured).Ask(request, counted);
      if (!second.ok()) return second.status();
      if (!measured_first) std::swap(first, second);
      absl::Status same = CheckBackends(first->receipt(), second->receipt());
      same.Update(CheckEqual(*first, *second));
      if (!same.ok()) return same;
      comparison_.answers += queries;
    }
    comparison_.batches.push_back({queries, calls, measured.Times(), other.Times()});
    return absl::OkStatus();
  }

 private:
  v1::SearchRequest RequestOf(std::uint32_t queries) {
    v1::SearchRequest request;
    request.set_collection(samples_.collection);
    v1::SearchOptions& options = *request.mutable_options();
    options.set_k(comparison_.k);
    options.set_reply_bytes_max(Limits{}.reply_bytes_max);
    options.mutable_payload()->set_selection(v1::PayloadSelector::SELECTION_NONE);
    for (std::uint32_t i = 0; i < queries; ++i) {
      const auto& vector = samples_.query_vectors[random_.Below(samples_.query_vectors.size())];
      request.add_queries()->mutable_vector()->mutable_values()->Add(vector.begin(), vector.end());
    }
    return request;
  }

  absl::Status CheckBackends(const v1::Receipt& measured, const v1::Receipt& other) {
    if (measured.snapshot_id() != other.snapshot_id()) {
      return absl::FailedPreconditionError(
          fmt::format("the servers do not serve the same content: {} and {}",
                      measured.snapshot_id(), other.snapshot_id()));
    }
    if (other_is_cpu_ && measured.backend() != v1::BACKEND_KIND_GPU) {
      return absl::FailedPreconditionError(
          fmt::format("{} is not answered by a GPU ({}), so there is nothing to compare with the "
                      "CPU; `simile doctor` explains",
                      samples_.collection, measured.reason()));
    }
    comparison_.measured_backend = BackendText(measured);
    comparison_.measured_device = measured.device();
    comparison_.other_backend = BackendText(other);
    comparison_.other_device = other.device();
    return absl::OkStatus();
  }

  const Connection& measured_;
  const Connection& other_;
  const QuerySamples& samples_;
  const bool other_is_cpu_;
  Comparison& comparison_;
  RandomDraw random_{1};
};

}  // namespace

absl::StatusOr<Comparison> Compare(const Connection& measured, const Connection& other,
                                   const QuerySamples& samples, std::uint32_t k,
                                   bool other_is_cpu) {
  Comparison comparison;
  comparison.collection = samples.collection;
  comparison.rows = samples.row_count;
  comparison.dim = samples.dim;
  comparison.k = k;
  ComparisonRun run(measured, other, samples, other_is_cpu, comparison);
  for (const std::uint32_t queries : kSizes) {
    if (absl::Status status = run.MeasureSize(queries); !status.ok()) return status;
  }
  return comparison;
}

}  // namespace simile::cli::bench
