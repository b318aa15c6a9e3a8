#include "service/search_pipeline.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "query/resolve.h"
#include "service/guarded.h"
#include "service/page_token.h"
#include "service/validate_refinement.h"

namespace simile::service {
namespace {

// A backend that meets its targets empties a full queue in this time.
constexpr std::chrono::milliseconds kRetryAfter{100};

// Tags, lengths and numbers of a HitGroup message, at most.
constexpr std::uint64_t kGroupOverheadBytes = 24;

std::string ReplyRemedy(const Limits& limits) {
  return fmt::format(
      "lower k, name the payload_fields you need or set without_payload, leave out with_vectors, "
      "or raise options.reply_bytes_max (up to {})",
      base::Grouped(limits.reply_bytes_max));
}

// Puts the caller's name of the repeated field (`user_ids`) in place of `queries`, which the
// messages of ResolveQueries begin with.
absl::Status Renamed(const absl::Status& status, std::string_view path) {
  constexpr std::string_view kPath = "queries[";
  const std::string message(status.message());
  if (path == "queries" || message.rfind(kPath, 0) != 0) return status;
  return {status.code(), fmt::format("{}[{}", path, message.substr(kPath.size()))};
}

// The result pages as far as they are known before the search: all but hits and groups.
std::vector<SearchPipeline::ResultPage> StartPages(
    const std::vector<query::QueryRequest>& requests,
    const std::vector<engine::ResolvedQuery>& queries) {
  std::vector<SearchPipeline::ResultPage> pages(requests.size());
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const engine::ResolvedQuery& query = queries[i];
    pages[i].offset = requests[i].offset;
    if (query.order) pages[i].cold_start_order = query.order->name();
    if (query.mask == nullptr) continue;
    // Counted once for each mask: queries of one call mostly share theirs.
    const bool counted = i > 0 && query.mask == queries[i - 1].mask;
    pages[i].rows_passing = counted ? pages[i - 1].rows_passing : query.mask->AllowedCount();
  }
  return pages;
}

template <class Element>
std::span<const Element> SkipFirst(const std::vector<Element>& all, std::uint32_t offset) {
  return std::span(all).subspan(std::min<std::size_t>(offset, all.size()));
}

}  // namespace

// What a call keeps while the executor has its task.
struct SearchPipeline::Pending {
  ValidSearch search;
  engine::SnapshotPtr snapshot;
  RowShape shape;
  std::vector<ResultPage> pages;  // [queries]
  v1::Receipt& receipt;
  Build build;
};

SearchPipeline::SearchPipeline(const Parts& parts)
    : parts_(parts), reply_remedy_(ReplyRemedy(parts.limits)) {}

void SearchPipeline::Run(Call& call, const std::string& collection, ValidSearch search,
                         std::string_view path, v1::Receipt& receipt, Build build) const {
  const absl::Status status = Guarded([&] {
    auto pending = std::make_shared<Pending>(
        Pending{std::move(search), nullptr, {}, {}, receipt, std::move(build)});
    return Submit(call, collection, path, std::move(pending));
  });
  if (status.ok()) return;  // the executor finishes the call
  CountRefusal(status);
  if (status.code() == absl::StatusCode::kResourceExhausted) call.SetRetryAfter(kRetryAfter);
  call.Finish(status);
}

absl::Status SearchPipeline::Submit(Call& call, const std::string& collection,
                                    std::string_view path, std::shared_ptr<Pending> pending) const {
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
  const absl::Status resolved = query::ResolveQueries(
      snapshot, pending->search.queries, pending->search.exclude_ids, parts_.clock, *task);
  if (!resolved.ok()) return Renamed(resolved, path);
  pending->pages = StartPages(pending->search.queries, task->queries);
  task->done = [this, &call, pending](const absl::StatusOr<engine::SearchAnswer>& answer) {
    if (!answer.ok()) CountRefusal(answer.status());
    call.Finish(answer.ok() ? Guarded([&] { return Complete(call, *answer, *pending); })
                            : answer.status());
  };
  return parts_.executor.Submit(std::move(task));
}

absl::StatusOr<engine::SnapshotPtr> SearchPipeline::Pin(const std::string& collection,
                                                        const Paging& paging) const {
  if (!paging.token) return parts_.store.Pin(collection);
  return parts_.store.PinVersion(collection, paging.token->snapshot_version,
                                 paging.token->loaded_at);
}

absl::Status SearchPipeline::Complete(Call& call, const engine::SearchAnswer& answer,
                                      Pending& pending) const {
  const ResponseBuilder builder(*pending.snapshot, pending.shape);
  std::vector<Row> rows;
  std::uint64_t group_bytes = 0;
  const auto add_rows = [&](std::span<const Hit> hits) {
    for (const Hit& hit : hits) rows.push_back(hit.row);
  };
  for (std::size_t i = 0; i < pending.pages.size(); ++i) {
    ResultPage& page = pending.pages[i];
    page.hits = SkipFirst(answer.results[i].hits, page.offset);
    page.groups = SkipFirst(answer.results[i].groups, page.offset);
    add_rows(page.hits);
    for (const engine::HitGroup& group : page.groups) {
      group_bytes += kGroupOverheadBytes + group.keyword.size();
      add_rows(group.hits);
    }
  }
  absl::Status fits = builder.CheckReplySize(rows, pending.search.shape.reply_bytes_max,
                                             reply_remedy_, group_bytes);
  if (!fits.ok()) return fits;
  pending.build({*pending.snapshot, builder, pending.pages, NextPageToken(pending)});
  parts_.metrics.RecordCost(answer.receipt.cost);
  FillReceipt(answer.receipt, Microseconds(parts_.clock.Now() - call.arrived_at()),
              call.request_id(), pending.receipt);
  return absl::OkStatus();
}

std::string SearchPipeline::NextPageToken(const Pending& pending) const {
  const Paging& paging = pending.search.paging;
  if (!paging.wanted) return {};
  bool any_full = false;
  for (std::size_t i = 0; i < pending.pages.size(); ++i) {
    const query::QueryRequest& query = pending.search.queries[i];
    const ResultPage& page = pending.pages[i];
    any_full = any_full || std::max(page.hits.size(), page.groups.size()) == query.k;
    const std::uint64_t skipped = std::uint64_t{query.offset} + query.k;
    if (!CheckReach({}, skipped, query, parts_.limits).ok()) return {};
  }
  if (!any_full) return {};
  parts_.store.Lease(*pending.snapshot, parts_.limits.page_lease);
  return WritePageToken({.snapshot_version = pending.snapshot->version,
                         .loaded_at = pending.snapshot->loaded_at,
                         .page = paging.token ? paging.token->page + 1 : 1,
                         .request_hash = paging.request_hash});
}

Clock::TimePoint SearchPipeline::Deadline(const Call& call) const {
  const Limits& limits = parts_.limits;
  const Clock::TimePoint latest = call.arrived_at() + limits.search_deadline_max;
  const auto wanted = call.deadline();
  return wanted ? std::min(*wanted, latest) : call.arrived_at() + limits.search_deadline_default;
}

void SearchPipeline::CountRefusal(const absl::Status& status) const {
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
