#include "service/search_pipeline.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "query/resolve.h"
#include "service/guarded.h"
#include "service/page_token.h"
#include "service/validate_refinement.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

std::string ReplyRemedy(const Limits& limits) {
  return fmt::format(
      "lower k, select the payload fields you need or none, leave out with_vectors, or raise "
      "options.reply_bytes_max (up to {})",
      base::Grouped(limits.reply_bytes_max));
}

// What the scores of a query's hits are.
v1::ScoreKind ScoreKindOf(const engine::ResolvedQuery& query, Metric metric) {
  if (query.order) return v1::SCORE_KIND_NONE;
  switch (query.scoring) {
    case engine::Scoring::kBestScore:
      return v1::SCORE_KIND_BEST_SCORE;
    case engine::Scoring::kSumScores:
      return v1::SCORE_KIND_SUM_SCORES;
    case engine::Scoring::kSimilarity:
      break;
  }
  return metric == Metric::kCosine ? v1::SCORE_KIND_COSINE : v1::SCORE_KIND_DOT;
}

// The result pages as far as they are known before the search: all but hits and groups.
std::vector<SearchPipeline::ResultPage> StartPages(
    const std::vector<query::QueryRequest>& requests,
    const std::vector<engine::ResolvedQuery>& queries, const engine::Snapshot& snapshot) {
  std::vector<SearchPipeline::ResultPage> pages(requests.size());
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const engine::ResolvedQuery& query = queries[i];
    pages[i].offset = requests[i].offset;
    pages[i].score_kind = ScoreKindOf(query, snapshot.dataset->metric);
    if (query.order) {
      pages[i].cold_start = {.order = requests[i].cold_start->order, .field = query.order->field()};
    }
    if (query.mask == snapshot.searchable) continue;  // no filter
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
  std::shared_ptr<const RowMask> existing;  // the items that exist for the call; null for all
  RowShape shape;
  std::vector<ResultPage> pages;  // [queries]
  v1::Receipt& receipt;
  Build build;
};

SearchPipeline::SearchPipeline(const Parts& parts)
    : parts_(parts), reply_remedy_(ReplyRemedy(parts.limits)) {}

void SearchPipeline::Run(Call& call, const std::string& collection, ValidSearch search,
                         std::string_view path, v1::Receipt& receipt, Build build) const {
  call.SetReplyLimit(search.answer.reply_bytes_max, reply_remedy_);
  const absl::Status status = Guarded([&] {
    auto pending = std::make_shared<Pending>(
        Pending{std::move(search), nullptr, nullptr, {}, {}, receipt, std::move(build)});
    return Submit(call, collection, path, std::move(pending));
  });
  if (status.ok()) return;  // the executor finishes the call
  CountRefusal(status);
  call.Finish(status);
}

absl::Status SearchPipeline::Submit(Call& call, const std::string& collection,
                                    std::string_view path, std::shared_ptr<Pending> pending) const {
  const ValidSearch& search = pending->search;
  auto pinned = Pin(collection, search);
  if (!pinned.ok()) return pinned.status();
  pending->snapshot = *std::move(pinned);
  const engine::Snapshot& snapshot = *pending->snapshot;
  auto payload = SelectPayload({"options.payload"}, collection, *search.answer.payload,
                               snapshot.dataset->payload);
  if (!payload.ok()) return payload.status();
  pending->shape = {*std::move(payload), search.answer.with_vectors, search.answer.with_rows};

  auto task = std::make_unique<engine::SearchTask>();
  task->snapshot = pending->snapshot;
  task->arrived_at = call.arrived_at();
  task->deadline = Deadline(call);
  task->cancelled = [flag = call.cancelled()] { return flag->load(std::memory_order_relaxed); };
  const query::CallOptions options{path, search.exclude_ids, search.answer.required_filter};
  absl::Status resolved =
      query::ResolveQueries(snapshot, search.queries, options, parts_.clock, *task);
  if (!resolved.ok()) return resolved;
  pending->existing = task->queries.front().existing;
  pending->pages = StartPages(search.queries, task->queries, snapshot);
  task->done = [this, &call, pending](const absl::StatusOr<engine::SearchAnswer>& answer) {
    if (!answer.ok()) CountRefusal(answer.status());
    call.Finish(answer.ok() ? Guarded([&] { return Complete(call, *answer, *pending); })
                            : answer.status());
  };
  return parts_.executor.Submit(std::move(task));
}

absl::StatusOr<engine::SnapshotPtr> SearchPipeline::Pin(const std::string& collection,
                                                        const ValidSearch& search) const {
  const std::optional<PageToken>& token = search.paging.token;
  auto pinned = token ? parts_.store.PinContent(collection, token->snapshot_id)
                      : parts_.store.Pin(collection);
  if (!pinned.ok()) return pinned;
  absl::Status expected = CheckSnapshotId({"options.expected_snapshot_id"},
                                          search.answer.expected_snapshot_id, **pinned);
  if (!expected.ok()) return expected;
  return pinned;
}

absl::Status SearchPipeline::Complete(Call& call, const engine::SearchAnswer& answer,
                                      Pending& pending) const {
  const ResponseBuilder builder(*pending.snapshot, pending.shape);
  std::vector<Row> rows;
  std::uint64_t keyword_bytes = 0;
  const auto add_rows = [&](std::span<const Hit> hits) {
    for (const Hit& hit : hits) rows.push_back(hit.row);
  };
  for (std::size_t i = 0; i < pending.pages.size(); ++i) {
    ResultPage& page = pending.pages[i];
    page.hits = SkipFirst(answer.results[i].hits, page.offset);
    page.groups = SkipFirst(answer.results[i].groups, page.offset);
    add_rows(page.hits);
    for (const engine::HitGroup& group : page.groups) {
      keyword_bytes += group.keyword.size();
      add_rows(group.hits);
    }
  }
  absl::Status fits =
      builder.CheckRowBytes(rows, pending.search.answer.reply_bytes_max,
                            parts_.limits.reply_bytes_max, reply_remedy_, keyword_bytes);
  if (!fits.ok()) return fits;
  pending.build(
      {*pending.snapshot, builder, pending.pages, pending.existing.get(), NextPageToken(pending)});
  parts_.metrics.RecordAnswer(call.method(), pending.pages.size(), answer.receipt.cost);
  FillBriefReceipt(answer.receipt, *pending.snapshot,
                   Microseconds(parts_.clock.Now() - call.arrived_at()), pending.receipt);
  if (!pending.search.brief_receipt) {
    FillReceiptDetail(answer.receipt, *pending.snapshot, call.request_id(), pending.receipt);
  }
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
  return WritePageToken({.snapshot_id = pending.snapshot->id,
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
  switch (base::ReasonOf(status)) {
    case base::ErrorReason::kQueueFull:
      return parts_.metrics.CountRejected(observe::Rejection::kQueueFull);
    case base::ErrorReason::kDeadlineExceeded:
      return parts_.metrics.CountRejected(observe::Rejection::kDeadline);
    case base::ErrorReason::kCancelled:
      return parts_.metrics.CountRejected(observe::Rejection::kCancelled);
    default:
      return;
  }
}

}  // namespace simile::service
