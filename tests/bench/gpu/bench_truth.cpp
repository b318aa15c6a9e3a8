#include "bench/gpu/bench_truth.h"

#include <algorithm>
#include <bit>
#include <vector>

#include <fmt/format.h>

#include "backend/cpu/scan_backend.h"
#include "bench/gpu/query_specs.h"
#include "certificate/canonical_score.h"

namespace simile::bench::gpu {

absl::StatusOr<BenchTruth> BenchTruth::Scan(MatrixView rows, MatrixView queries, std::size_t verify,
                                            std::uint32_t k_max, unsigned threads) {
  const auto scan =
      backend::cpu::MakeScanBackend(*certificate::SupportedCanonicalKernels()[0], threads);
  const auto index = scan->MakeResident({rows, nullptr, Metric::kCosine, 0});
  if (!index.ok()) return index.status();
  const std::size_t count = std::min(verify, queries.row_count());
  const std::vector<QuerySpec> specs = AllWanting(count, k_max);
  BenchTruth truth;
  const absl::Status status = (*index)->Search({queries.Slice(0, count), specs}, truth.hits_);
  if (!status.ok()) return status;
  return truth;
}

absl::Status BenchTruth::CheckOne(std::span<const Hit> actual, std::size_t query,
                                  std::uint32_t k) const {
  const std::span<const Hit> whole = hits_.Hits(query);
  const std::span<const Hit> expected = whole.first(std::min<std::size_t>(k, whole.size()));
  const auto same = [](const Hit& a, const Hit& b) {
    return a.row == b.row &&
           std::bit_cast<std::uint32_t>(a.score) == std::bit_cast<std::uint32_t>(b.score);
  };
  if (std::ranges::equal(actual, expected, same)) return absl::OkStatus();
  const auto at = std::ranges::mismatch(actual, expected, same).in1 - actual.begin();
  return absl::InternalError(
      fmt::format("query {}, k {}: the card's answer ({} hits) differs from the scan's ({} hits) "
                  "at rank {}",
                  query, k, actual.size(), expected.size(), at));
}

absl::StatusOr<std::size_t> BenchTruth::Check(const SearchResult& result, std::size_t first,
                                              std::uint32_t k) const {
  std::size_t checked = 0;
  for (; checked < result.batch() && first + checked < query_count(); ++checked) {
    const absl::Status status = CheckOne(result.Hits(checked), first + checked, k);
    if (!status.ok()) return status;
  }
  return checked;
}

absl::StatusOr<std::size_t> BenchTruth::CheckProven(std::span<const std::vector<Hit>> answers,
                                                    std::uint32_t k) const {
  std::size_t checked = 0;
  for (std::size_t query = 0; query < std::min(answers.size(), query_count()); ++query) {
    if (answers[query].empty()) continue;
    const absl::Status status = CheckOne(answers[query], query, k);
    if (!status.ok()) return status;
    ++checked;
  }
  return checked;
}

std::vector<std::int64_t> BenchTruth::Rows() const {
  std::vector<std::int64_t> rows;
  for (std::size_t query = 0; query < query_count(); ++query) {
    for (const Hit& hit : hits_.Hits(query)) rows.push_back(hit.row);
  }
  return rows;
}

}  // namespace simile::bench::gpu
