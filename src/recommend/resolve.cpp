#include "recommend/resolve.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "data/nearest_name.h"
#include "data/wording.h"
#include "simile/limits.h"

namespace simile::recommend {
namespace {

// Resolves one query of a call into a row of the task's matrix and a spec.
class Resolver {
 public:
  Resolver(const engine::Snapshot& snapshot, std::string prefix, float* row,
           engine::OwnedQuery& spec)
      : snapshot_(snapshot), prefix_(std::move(prefix)), row_(row), spec_(spec) {}

  absl::Status Resolve(const QueryRequest& request) {
    absl::Status status =
        std::visit([this](const auto& target) { return Target(target); }, request.target);
    if (!status.ok()) return status;
    for (const std::string& id : request.exclude_ids) {
      if (const auto row = snapshot_.dataset->ids.Find(id)) spec_.excluded_rows.push_back(*row);
    }
    std::vector<Row>& excluded = spec_.excluded_rows;
    std::sort(excluded.begin(), excluded.end());
    excluded.erase(std::unique(excluded.begin(), excluded.end()), excluded.end());

    if (!request.filter.empty() && spec_.mask == nullptr) {
      absl::StatusOr<std::shared_ptr<const RowMask>> rows = snapshot_.filters->Rows(request.filter);
      if (!rows.ok()) {
        return {rows.status().code(),
                fmt::format("{}filter, {}", prefix_, std::string(rows.status().message()))};
      }
      spec_.mask = *std::move(rows);
    }
    const std::uint64_t wanted = std::uint64_t{request.offset} + request.k;
    spec_.k = static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, snapshot_.row_count()));
    spec_.score_threshold = request.score_threshold;
    return absl::OkStatus();
  }

 private:
  absl::Status Target(const ByVector& target) {
    const std::vector<float>& values = target.values;
    if (values.size() != snapshot_.dim()) {
      return absl::InvalidArgumentError(fmt::format(
          "{}vector holds {}, {} has {}; a vector from another model cannot be compared", prefix_,
          data::Counted(values.size(), "dimension"), snapshot_.collection,
          data::Grouped(snapshot_.dim())));
    }
    // In double: squares of fp32 numbers are exact in it and neither overflow nor underflow.
    double squares = 0;
    for (std::size_t column = 0; column < values.size(); ++column) {
      const double value = values[column];
      if (!std::isfinite(value)) {
        return absl::InvalidArgumentError(
            fmt::format("{}vector holds {} at column {}; vectors must be finite", prefix_,
                        std::isnan(value) ? "NaN" : "infinity", column));
      }
      squares += value * value;
    }
    const double length = std::sqrt(squares);
    if (length < kNormMin || length > kNormMax) {
      return absl::InvalidArgumentError(
          fmt::format("{}vector has length {:.4g}; lengths from 2^-60 to 2^60 can be compared",
                      prefix_, length));
    }
    const bool cosine = snapshot_.dataset->metric == Metric::kCosine;
    for (std::size_t column = 0; column < values.size(); ++column) {
      row_[column] = cosine ? static_cast<float>(values[column] / length) : values[column];
    }
    return absl::OkStatus();
  }

  absl::Status Target(const ByItem& target) {
    const std::optional<Row> row = snapshot_.dataset->ids.Find(target.id);
    if (!row) return Unknown("item", target.id, snapshot_.dataset->ids);
    Copy(snapshot_.dataset->vectors.view(), *row);
    spec_.excluded_rows.push_back(*row);
    return absl::OkStatus();
  }

  absl::Status Target(const ByUser& target) {
    const data::Profiles& profiles = snapshot_.dataset->profiles;
    if (profiles.ids.size() == 0) {
      return absl::FailedPreconditionError(
          fmt::format("{}{} has no user profiles (no user_ids.json in its folder)", prefix_,
                      snapshot_.collection));
    }
    const std::optional<Row> user = profiles.ids.Find(target.id);
    if (!user) return Unknown("user", target.id, profiles.ids);
    Copy(profiles.vectors.view(), *user);
    if (target.exclude_seen) {
      const std::span<const Row> seen = profiles.seen.Of(*user);
      spec_.excluded_rows.assign(seen.begin(), seen.end());
    }
    return absl::OkStatus();
  }

  absl::Status Unknown(std::string_view kind, const std::string& id,
                       const data::IdIndex& ids) const {
    const std::string offer = data::DidYouMean(ids.Nearest(id));
    return absl::NotFoundError(fmt::format("{}no {} {} in {}{}{}", prefix_, kind, data::Quoted(id),
                                           snapshot_.collection, offer.empty() ? "" : ".", offer));
  }

  void Copy(MatrixView vectors, Row row) {
    std::copy_n(vectors.PaddedRow(row), vectors.padded_dim(), row_);
  }

  const engine::Snapshot& snapshot_;
  const std::string prefix_;
  float* const row_;
  engine::OwnedQuery& spec_;
};

// Filters may take a while.
absl::Status CheckGoesOn(const engine::SearchTask& task, const Clock& clock) {
  if (task.cancelled && task.cancelled()) {
    return absl::CancelledError("the caller gave up before the filters were evaluated");
  }
  if (clock.Now() >= task.deadline) {
    return absl::DeadlineExceededError("the deadline passed before the filters were evaluated");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveQueries(const engine::Snapshot& snapshot,
                            std::span<const QueryRequest> requests, const Clock& clock,
                            engine::SearchTask& task) {
  absl::StatusOr<data::Matrix> queries = data::Matrix::Create(requests.size(), snapshot.dim());
  if (!queries.ok()) return queries.status();
  task.queries = *std::move(queries);
  task.specs.assign(requests.size(), {});
  for (std::size_t index = 0; index < requests.size(); ++index) {
    std::string prefix = requests.size() > 1 ? fmt::format("queries[{}]: ", index) : "";
    Resolver resolver(snapshot, std::move(prefix), task.queries.MutableRow(index),
                      task.specs[index]);
    // Queries of one call mostly share their filter: then they share its mask without another look.
    const bool same_filter = index > 0 && requests[index].filter == requests[index - 1].filter;
    if (same_filter) task.specs[index].mask = task.specs[index - 1].mask;
    if (!same_filter && !requests[index].filter.empty()) {
      if (absl::Status status = CheckGoesOn(task, clock); !status.ok()) return status;
    }
    if (absl::Status status = resolver.Resolve(requests[index]); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace simile::recommend
