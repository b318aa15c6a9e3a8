#include "doctor/self_check.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/split_mix.h"

namespace simile::doctor {
namespace {

constexpr std::size_t kRowCount = 5'000;
constexpr std::size_t kQueryCount = 1'000;
constexpr std::size_t kDim = 384;
constexpr std::uint32_t kHitsAsked = 10;
constexpr std::chrono::milliseconds kMeasuredFor{250};

}  // namespace

absl::StatusOr<data::Matrix> RandomVectors(std::size_t row_count, std::size_t dim,
                                           std::uint64_t seed) {
  absl::StatusOr<data::Matrix> matrix = data::Matrix::Create(row_count, dim);
  if (!matrix.ok()) return matrix;
  for (std::size_t row = 0; row < row_count; ++row) {
    float* const values = matrix->MutableRow(row);
    double square = 0;
    for (std::size_t column = 0; column < dim; ++column) {
      const auto bits = static_cast<std::int32_t>(base::NextSplitMix(seed) >> 32);
      values[column] = static_cast<float>(bits) * 0x1p-31F;
      square += static_cast<double>(values[column]) * values[column];
    }
    const auto scale = static_cast<float>(1 / std::sqrt(square));
    for (std::size_t column = 0; column < dim; ++column) values[column] *= scale;
  }
  return matrix;
}

absl::StatusOr<CheckSample> MakeCheckSample() {
  absl::StatusOr<data::Matrix> rows = RandomVectors(kRowCount, kDim, 1);
  if (!rows.ok()) return rows.status();
  absl::StatusOr<data::Matrix> queries = RandomVectors(kQueryCount, kDim, 2);
  if (!queries.ok()) return queries.status();
  return CheckSample{std::make_shared<const data::Matrix>(*std::move(rows)), *std::move(queries)};
}

absl::StatusOr<std::shared_ptr<const SegmentIndex>> MakeSegment(Backend& backend,
                                                                const CheckSample& sample) {
  return backend.MakeResident({sample.rows->view(), sample.rows, Metric::kCosine, 0});
}

absl::StatusOr<SearchResult> AnswerQueries(const SegmentIndex& segment, const CheckSample& sample,
                                           std::size_t query_count) {
  QuerySpec spec;
  spec.k = kHitsAsked;
  const std::vector<QuerySpec> specs(query_count, spec);
  SearchResult result;
  absl::Status status =
      segment.Search({sample.queries.view().Slice(0, query_count), specs}, result);
  if (!status.ok()) return status;
  return result;
}

std::string FindDifference(const SearchResult& answer, const SearchResult& reference) {
  for (std::size_t query = 0; query < reference.batch(); ++query) {
    const std::span<const Hit> hits = answer.Hits(query);
    const std::span<const Hit> expected = reference.Hits(query);
    if (hits.size() != expected.size()) {
      return fmt::format("query {}: {} hits instead of {}", query, hits.size(), expected.size());
    }
    for (std::size_t rank = 0; rank < hits.size(); ++rank) {
      const bool same = hits[rank].row == expected[rank].row &&
                        std::bit_cast<std::uint32_t>(hits[rank].score) ==
                            std::bit_cast<std::uint32_t>(expected[rank].score);
      if (!same) {
        return fmt::format("query {}, rank {}: row {} ({:a}) instead of row {} ({:a})", query,
                           rank + 1, hits[rank].row, hits[rank].score, expected[rank].row,
                           expected[rank].score);
      }
    }
  }
  return {};
}

absl::StatusOr<double> MeasureRate(const SegmentIndex& segment, const CheckSample& sample) {
  using SteadyClock = std::chrono::steady_clock;
  const SteadyClock::time_point began = SteadyClock::now();
  for (std::size_t answered = kQueryCount;; answered += kQueryCount) {
    const absl::StatusOr<SearchResult> result = AnswerQueries(segment, sample, kQueryCount);
    if (!result.ok()) return result.status();
    const std::chrono::duration<double> took = SteadyClock::now() - began;
    if (took >= kMeasuredFor) return static_cast<double>(answered) / took.count();
  }
}

}  // namespace simile::doctor
