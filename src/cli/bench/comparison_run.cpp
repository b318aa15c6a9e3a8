#include "cli/bench/comparison_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cli/bench/answer_check.h"
#include "cli/bench/measured_calls.h"
#include "cli/bench/random_draw.h"
#include "cli/server_text.h"
#include "simile/limits.h"

namespace simile::cli::bench {
namespace {

constexpr std::uint32_t kSizes[] = {1, 10, 32, 100, 1'000};
constexpr std::uint32_t kQueriesOfSize = 2'000;  // in all calls of one size
constexpr std::uint32_t kCallsMin = 10;
constexpr std::uint32_t kCallsMax = 100;
constexpr std::uint32_t kUncountedCalls = 3;

ComparedTimes ToComparedTimes(const MeasuredCalls& times) {
  return {times.call_median_ms(), times.compute_median_ms()};
}

// OK if both answers have the same ids and score bits in the same order.
absl::Status CheckEqual(const v1::SearchResponse& measured, const v1::SearchResponse& other) {
  if (measured.results_size() != other.results_size()) {
    return absl::DataLossError(
        fmt::format("the answers differ, so no times are printed: {} results, and {} on the other "
                    "server",
                    measured.results_size(), other.results_size()));
  }
  for (int query = 0; query < measured.results_size(); ++query) {
    const v1::SearchResult& a = measured.results(query);
    const v1::SearchResult& b = other.results(query);
    const std::optional<int> place = FirstDifferentHit(a, b);
    if (!place) continue;
    return absl::DataLossError(fmt::format(
        "the answers differ, so no times are printed: query {}, rank {}: {}, and on the "
        "other server {}",
        query, *place + 1, HitText(a, *place), HitText(b, *place)));
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
    MeasuredCalls measured;
    MeasuredCalls other;
    const std::uint32_t calls = std::clamp(kQueriesOfSize / queries, kCallsMin, kCallsMax);
    for (std::uint32_t call = 0; call < kUncountedCalls + calls; ++call) {
      const bool counted = call >= kUncountedCalls;
      const v1::SearchRequest request = MakeRequest(queries);
      const auto ask = [&](bool is_measured) {
        const Connection& server = is_measured ? measured_ : other_;
        const auto search = [&] { return server.Search(request); };
        return counted ? (is_measured ? measured : other).Time(search) : search();
      };
      // Takes turns, because the server asked first finds the request in no cache.
      const bool measured_first = call % 2 == 0;
      absl::StatusOr<v1::SearchResponse> first = ask(measured_first);
      if (!first.ok()) return first.status();
      absl::StatusOr<v1::SearchResponse> second = ask(!measured_first);
      if (!second.ok()) return second.status();
      if (!measured_first) std::swap(first, second);
      absl::Status same = CheckBackends(first->receipt(), second->receipt());
      same.Update(CheckEqual(*first, *second));
      if (!same.ok()) return same;
      comparison_.answers += queries;
    }
    comparison_.batches.push_back(
        {queries, calls, ToComparedTimes(measured), ToComparedTimes(other)});
    return absl::OkStatus();
  }

 private:
  v1::SearchRequest MakeRequest(std::uint32_t queries) {
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
