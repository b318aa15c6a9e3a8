#include "service/search_road.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "recommend/resolve.h"
#include "service/guarded.h"

namespace simile::service {
namespace {

// By then a full queue has been worked off by any backend that meets its targets.
constexpr std::chrono::milliseconds kRetryAfter{100};

constexpr std::string_view kReplyRemedy =
    "lower k, name the payload_fields you need or set without_payload, leave out with_vectors, or "
    "raise options.reply_bytes_max (up to 67,108,864)";

// Resolving speaks of queries; a caller that sent user ids should read of those.
absl::Status Renamed(const absl::Status& status, std::string_view path) {
  constexpr std::string_view kPath = "queries[";
  const std::string message(status.message());
  if (path == "queries" || message.rfind(kPath, 0) != 0) return status;
  return {status.code(), fmt::format("{}[{}", path, message.substr(kPath.size()))};
}

std::vector<std::span<const Hit>> SkipOffsets(const engine::SearchAnswer& answer,
                                              const std::vector<recommend::QueryRequest>& queries) {
  std::vector<std::span<const Hit>> shown;
  shown.reserve(answer.hits.size());
  for (std::size_t index = 0; index < answer.hits.size(); ++index) {
    const std::span<const Hit> hits = answer.hits[index];
    shown.push_back(hits.subspan(std::min<std::size_t>(queries[index].offset, hits.size())));
  }
  return shown;
}

// Counted once for each mask: queries of one call mostly share theirs.
std::vector<std::optional<std::uint64_t>> RowsPassing(
    const std::vector<engine::OwnedQuery>& queries) {
  std::vector<std::optional<std::uint64_t>> counts(queries.size());
  for (std::size_t i = 0; i < queries.size(); ++i) {
    if (queries[i].mask == nullptr) continue;
    const bool counted = i > 0 && queries[i].mask == queries[i - 1].mask;
    counts[i] = counted ? counts[i - 1] : queries[i].mask->AllowedCount();
  }
  return counts;
}

}  // namespace

// What a call keeps between its two halves.
struct SearchRoad::Pending {
  ValidSearch search;
  engine::SnapshotPtr snapshot;
  RowShape shape;
  std::vector<std::optional<std::uint64_t>> rows_passing;
  v1::Receipt& receipt;
  Build build;
};

void SearchRoad::Run(Call& call, const std::string& collection, ValidSearch search,
                     std::string_view path, v1::Receipt& receipt, Build build) const {
  const absl::Status status = Guarded([&] {
    auto pending = std::make_shared<Pending>(
        Pending{std::move(search), nullptr, {}, {}, receipt, std::move(build)});
    return Submit(call, collection, path, std::move(pending));
  });
  if (status.ok()) return;  // from now on the call is the executor's
  CountRefusal(status);
  if (status.code() == absl::StatusCode::kResourceExhausted) call.SetRetryAfter(kRetryAfter);
  call.Finish(status);
}

absl::Status SearchRoad::Submit(Call& call, const std::string& collection, std::string_view path,
                                std::shared_ptr<Pending> pending) const {
  auto pinned = parts_.store.Pin(collection);
  if (!pinned.ok()) return pinned.status();
  pending->snapshot = *std::move(pinned);
  const engine::Snapshot& snapshot = *pending->snapshot;
  const AnswerShape& asked = pending->search.shape;
  auto payload = SelectPayload("options.payload_fields", collection, asked.payload_fields,
                               asked.with_payload, snapshot.dataset->payload);
  if (!payload.ok()) return payload.status();
  pending->shape = {*std::move(payload), asked.with_vectors};

  auto task = std::make_unique<engine::SearchTask>();
  task->snapshot = pending->snapshot;
  task->arrived_at = call.arrived_at();
  task->deadline = Deadline(call);
  task->cancelled = [flag = call.cancelled()] { return flag->load(std::memory_order_relaxed); };
  const absl::Status resolved =
      recommend::ResolveQueries(snapshot, pending->search.queries, parts_.clock, *task);
  if (!resolved.ok()) return Renamed(resolved, path);
  pending->rows_passing = RowsPassing(task->specs);
  task->done = [this, &call, pending](const absl::StatusOr<engine::SearchAnswer>& answer) {
    if (!answer.ok()) CountRefusal(answer.status());
    call.Finish(answer.ok() ? Guarded([&] { return Complete(call, *pending, *answer); })
                            : answer.status());
  };
  return parts_.executor.Submit(std::move(task));
}

absl::Status SearchRoad::Complete(Call& call, const Pending& pending,
                                  const engine::SearchAnswer& answer) const {
  const ResponseBuilder builder(*pending.snapshot, pending.shape);
  const std::vector<std::span<const Hit>> shown = SkipOffsets(answer, pending.search.queries);
  std::vector<Row> rows;
  for (const std::span<const Hit> hits : shown) {
    for (const Hit& hit : hits) rows.push_back(hit.row);
  }
  absl::Status fits =
      builder.CheckReplySize(rows, pending.search.shape.reply_bytes_max, kReplyRemedy);
  if (!fits.ok()) return fits;
  pending.build({*pending.snapshot, builder, shown, pending.search.queries, pending.rows_passing});
  parts_.metrics.RecordCost(answer.receipt.cost);
  FillReceipt(answer.receipt, Microseconds(parts_.clock.Now() - call.arrived_at()),
              call.request_id(), pending.receipt);
  return absl::OkStatus();
}

Clock::TimePoint SearchRoad::Deadline(const Call& call) const {
  const Limits& limits = parts_.limits;
  const Clock::TimePoint latest = call.arrived_at() + limits.search_deadline_max;
  const auto wanted = call.deadline();
  return wanted ? std::min(*wanted, latest) : call.arrived_at() + limits.search_deadline_default;
}

void SearchRoad::CountRefusal(const absl::Status& status) const {
  switch (status.code()) {
    case absl::StatusCode::kResourceExhausted:
      return parts_.metrics.CountRejected(observe::Rejection::kQueueFull);
    case absl::StatusCode::kDeadlineExceeded:
      return parts_.metrics.CountRejected(observe::Rejection::kDeadline);
    case absl::StatusCode::kCancelled:
      return parts_.metrics.CountRejected(observe::Rejection::kCancelled);
    default:
      return;
  }
}

}  // namespace simile::service
