#include "service/search_road.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "recommend/resolve.h"
#include "service/guarded.h"
#include "service/page_token.h"
#include "service/validate_refinement.h"

namespace simile::service {
namespace {

// By then a full queue has been worked off by any backend that meets its targets.
constexpr std::chrono::milliseconds kRetryAfter{100};

// The tags, lengths and numbers of a HitGroup.
constexpr std::uint64_t kGroupOverheadBytes = 24;

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

// What is known of the results before there are any.
std::vector<SearchRoad::QueryResult> ResultsToCome(
    const std::vector<recommend::QueryRequest>& queries,
    const std::vector<engine::Question>& questions) {
  std::vector<SearchRoad::QueryResult> results(queries.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const engine::Question& question = questions[i];
    results[i].offset = queries[i].offset;
    if (question.order) results[i].fallback_order = question.order->name();
    if (question.mask == nullptr) continue;
    // Counted once for each mask: queries of one call mostly share theirs.
    const bool counted = i > 0 && question.mask == questions[i - 1].mask;
    results[i].rows_passing = counted ? results[i - 1].rows_passing : question.mask->AllowedCount();
  }
  return results;
}

// What follows the best `offset`.
template <class Element>
std::span<const Element> Skip(const std::vector<Element>& all, std::uint32_t offset) {
  return std::span(all).subspan(std::min<std::size_t>(offset, all.size()));
}

}  // namespace

// What a call keeps between its two halves.
struct SearchRoad::Pending {
  ValidSearch search;
  engine::SnapshotPtr snapshot;
  RowShape shape;
  std::vector<QueryResult> results;
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
  auto pinned = Pin(collection, pending->search.paging);
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
  pending->results = ResultsToCome(pending->search.queries, task->questions);
  task->done = [this, &call, pending](const absl::StatusOr<engine::SearchAnswer>& answer) {
    if (!answer.ok()) CountRefusal(answer.status());
    call.Finish(answer.ok() ? Guarded([&] { return Complete(call, *answer, *pending); })
                            : answer.status());
  };
  return parts_.executor.Submit(std::move(task));
}

absl::StatusOr<engine::SnapshotPtr> SearchRoad::Pin(const std::string& collection,
                                                    const Paging& paging) const {
  if (!paging.token) return parts_.store.Pin(collection);
  return parts_.store.PinVersion(collection, paging.token->snapshot_version,
                                 paging.token->loaded_at);
}

absl::Status SearchRoad::Complete(Call& call, const engine::SearchAnswer& answer,
                                  Pending& pending) const {
  const ResponseBuilder builder(*pending.snapshot, pending.shape);
  std::vector<Row> rows;
  std::uint64_t group_bytes = 0;
  const auto add_rows = [&](std::span<const Hit> hits) {
    for (const Hit& hit : hits) rows.push_back(hit.row);
  };
  for (std::size_t i = 0; i < pending.results.size(); ++i) {
    QueryResult& result = pending.results[i];
    result.hits = Skip(answer.answers[i].hits, result.offset);
    result.groups = Skip(answer.answers[i].groups, result.offset);
    add_rows(result.hits);
    for (const engine::HitGroup& group : result.groups) {
      group_bytes += kGroupOverheadBytes + group.keyword.size();
      add_rows(group.hits);
    }
  }
  absl::Status fits =
      builder.CheckReplySize(rows, pending.search.shape.reply_bytes_max, kReplyRemedy, group_bytes);
  if (!fits.ok()) return fits;
  pending.build({*pending.snapshot, builder, pending.results, NextPageToken(pending)});
  parts_.metrics.RecordCost(answer.receipt.cost);
  FillReceipt(answer.receipt, Microseconds(parts_.clock.Now() - call.arrived_at()),
              call.request_id(), pending.receipt);
  return absl::OkStatus();
}

std::string SearchRoad::NextPageToken(const Pending& pending) const {
  const Paging& paging = pending.search.paging;
  if (!paging.wanted) return {};
  bool goes_on = false;
  for (std::size_t i = 0; i < pending.results.size(); ++i) {
    const recommend::QueryRequest& query = pending.search.queries[i];
    const QueryResult& result = pending.results[i];
    goes_on = goes_on || std::max(result.hits.size(), result.groups.size()) == query.k;
    const std::uint64_t skipped = std::uint64_t{query.offset} + query.k;
    if (!CheckReach("", skipped, query, parts_.limits).ok()) return {};
  }
  if (!goes_on) return {};
  parts_.store.Lease(*pending.snapshot, parts_.limits.page_lease);
  return WritePageToken({.snapshot_version = pending.snapshot->version,
                         .loaded_at = pending.snapshot->loaded_at,
                         .page = paging.token ? paging.token->page + 1 : 1,
                         .request_hash = paging.request_hash});
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
