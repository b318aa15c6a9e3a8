#include "bench/gpu/bench_truth.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backend/cpu/scan_backend.h"
#include "bench/bench_data.h"
#include "bench/gpu/query_specs.h"
#include "certificate/canonical_score.h"

namespace simile::bench::gpu {

absl::StatusOr<BenchTruth> BenchTruth::Scan(const data::Matrix& rows, const data::Matrix& queries,
                                            std::size_t verify, std::uint32_t k_max,
                                            unsigned threads) {
  const auto scan =
      backend::cpu::MakeScanBackend(*certificate::SupportedCanonicalKernels()[0], threads);
  const auto index = scan->MakeResident({rows.view(), nullptr, Metric::kCosine, 0});
  if (!index.ok()) return index.status();
  const std::size_t count = std::min(verify, queries.row_count());
  const std::vector<QuerySpec> specs = AllWanting(count, k_max);
  BenchTruth truth;
  const absl::Status status =
      (*index)->Search({queries.view().Slice(0, count), specs}, truth.hits_);
  if (!status.ok()) return status;
  return truth;
}

absl::StatusOr<std::size_t> BenchTruth::Check(const SearchResult& result, std::size_t first,
                                              std::uint32_t k) const {
  std::size_t checked = 0;
  for (std::size_t i = 0; i < result.batch() && first + i < query_count(); ++i, ++checked) {
    const std::span<const Hit> whole = hits_.Hits(first + i);
    const std::span<const Hit> expected = whole.first(std::min<std::size_t>(k, whole.size()));
    const std::span<const Hit> actual = result.Hits(i);
    const auto same = [](const Hit& a, const Hit& b) {
      return a.row == b.row &&
             std::bit_cast<std::uint32_t>(a.score) == std::bit_cast<std::uint32_t>(b.score);
    };
    if (std::ranges::equal(actual, expected, same)) continue;
    const auto at = static_cast<std::size_t>(std::ranges::mismatch(actual, expected, same).in1 -
                                             actual.begin());
    return absl::InternalError(fmt::format(
        "query {}, k {}: the card's answer ({} hits, by {}) differs from the scan's ({} hits) at "
        "rank {}; no time is reported",
        first + i, k, actual.size(), result.Engine(i), expected.size(), at));
  }
  return checked;
}

absl::Status BenchTruth::WriteRows(const std::string& path) const {
  std::vector<std::int64_t> rows;
  for (std::size_t query = 0; query < query_count(); ++query) {
    for (const Hit& hit : hits_.Hits(query)) rows.push_back(hit.row);
  }
  return WriteNpy(path, rows, query_count());
}

}  // namespace simile::bench::gpu
