#include "service/search_pipeline.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "google/rpc/status.pb.h"
#include "net/event_loop.h"
#include "service/calls/call.h"
#include "service/replies/answer_notes.h"
#include "service/replies/error_encoding.h"
#include "service/replies/hit_columns.h"
#include "service/requests/page_token.h"
#include "service/requests/validate_query.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

// The step that a call has not reached when it ends while it is resolved, for the message.
constexpr std::string_view kStep = "its queries were resolved";

std::string ReplyRemedy(const Limits& limits) {
  return fmt::format(
      "lower k, select the payload fields you need or none, leave out with_vectors, or raise "
      "options.reply_bytes_max (up to {})",
      base::Grouped(limits.reply_bytes_max));
}

constexpr std::string_view kExplainRemedy = "explain fewer ids, or raise options.reply_bytes_max";

// The request's repeated field, for messages.
std::string_view RepeatedFieldName(SearchPipeline::Method method) {
  return method == SearchPipeline::Method::kSearch ? "queries" : "user_ids";
}

// What the scores of a query's hits are.
v1::ScoreKind ToScoreKind(const engine::ResolvedQuery& query, Metric metric) {
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

// Counts how many of a query's excluded rows would otherwise be allowed. For the queries of one
// call, which mostly share their masks and often their exclusions. Borrows the queries.
class ExclusionCounts {
 public:
  std::uint64_t Count(const engine::ResolvedQuery& query) {
    const RowMask* const mask = query.mask.get();
    if (mask == nullptr) return query.excluded().size();
    if (query.shared_excluded_rows == nullptr) return mask->AllowedCount(query.excluded());
    const auto [known, is_new] = shared_.try_emplace(mask);
    if (is_new) known->second = mask->AllowedCount(query.excluded());
    return known->second;
  }

 private:
  std::map<const RowMask*, std::uint64_t> shared_;  // of exclusions that queries share, by mask
};

// Makes the result pages as far as they are known before the search: all but hits, groups and
// users.
// they are.
//   queries  only the queries that can be answered
std::vector<ResultPage> StartPages(const ValidSearch& search,
                                   const std::vector<engine::ResolvedQuery>& queries,
                                   engine::CallReport& report, std::string_view request_id,
                                   const engine::Snapshot& snapshot) {
  const std::vector<engine::QueryRequest>& requests = search.queries;
  std::vector<ResultPage> pages(requests.size());
  std::map<const RowMask*, std::uint64_t> counts;  // queries of one call mostly share their masks
  ExclusionCounts exclusions;
  std::size_t answered = 0;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    engine::QueryReport& told = report.queries[i];
    if (search.partial) pages[i].index = static_cast<std::uint32_t>(i);
    if (!told.status.ok()) {
      pages[i].error = EncodeError(told.status, request_id).SerializeAsString();
      continue;
    }
    const engine::ResolvedQuery& query = queries[answered++];
    pages[i].excluded_count = exclusions.Count(query);
    pages[i].notes = std::move(told.notes);
    pages[i].offset = requests[i].offset;
    pages[i].filtered = !requests[i].filter.empty();
    pages[i].score_kind = ToScoreKind(query, snapshot.dataset->metric);
    if (query.order) {
      pages[i].cold_start = {.order = requests[i].cold_start->order, .field = query.order->field()};
    }
    if (query.mask == snapshot.searchable) continue;  // no filter
    const auto [count, is_new] = counts.try_emplace(query.mask.get());
    if (is_new) count->second = query.mask->AllowedCount();
    pages[i].rows_passing = count->second;
  }
  return pages;
}

// Sets the user of each page of Recommend, and how many items the user has seen.
void AddUsers(const std::vector<engine::QueryRequest>& requests, const engine::CallReport& report,
              std::vector<ResultPage>& pages) {
  for (std::size_t i = 0; i < pages.size(); ++i) {
    // A query that is refused for its id is empty.
    const auto* const user = std::get_if<engine::ByUser>(&requests[i].target);
    if (user != nullptr) pages[i].user_id = user->id;
    pages[i].seen_count = report.queries[i].seen_count;
  }
}

// Estimates the bytes of the reply, from the mean size of a row.
std::uint64_t EstimateReplyBytes(const std::vector<engine::ResolvedQuery>& queries,
                                 const RowShape& shape, const engine::Snapshot& snapshot) {
  constexpr std::uint64_t kHitBytes = 40;  // score, rank, what an id needs beside its text
  const data::Dataset& dataset = *snapshot.dataset;
  const std::uint64_t rows = std::max<std::uint64_t>(1, snapshot.row_count());
  std::uint64_t row_bytes = kHitBytes + dataset.ids.id_bytes() / rows;
  if (shape.with_vectors) row_bytes += snapshot.dim() * sizeof(float);
  if (!shape.payload.none) row_bytes += dataset.payload.packed_bytes() / rows;
  std::uint64_t hits = 0;
  for (const engine::ResolvedQuery& query : queries) {
    hits += std::uint64_t{query.k} * (query.grouping ? query.grouping->group_size : 1);
  }
  return hits * row_bytes;
}

// Frees what a resolved search no longer needs, and with it all views of the request. Returns the
// bytes of the rest.
std::uint64_t KeepForReply(ValidSearch& search) {
  search.exclude_ids = std::vector<std::string_view>();
  if (search.allow_ids) search.allow_ids.emplace();  // notes ask whether there was a list
  search.answer.expected_snapshot_id = {};
  search.answer.required_filter = {};
  search.answer.payload = nullptr;
  search.explained_ids = std::vector<std::string_view>();
  std::uint64_t bytes = search.queries.capacity() * sizeof(engine::QueryRequest);
  for (engine::QueryRequest& query : search.queries) {
    query.exclude_ids = std::vector<std::string>();
    query.filter = {};
    query.cold_start.reset();
    if (query.group_by) query.group_by->field = {};
    if (const auto* const user = std::get_if<engine::ByUser>(&query.target)) {
      bytes += user->id.capacity();
    } else {
      query.target = {};
    }
  }
  return bytes;
}

// Counts the notes of the call and of its pages.
std::uint64_t NoteCount(const SearchReply::Parts& parts) {
  std::uint64_t count = parts.notes.size();
  for (const ResultPage& page : parts.pages) count += page.notes.size();
  return count;
}

std::string LeftOutText(std::uint64_t note_count) {
  return fmt::format("{} left out: the reply may not be larger",
                     note_count == 1 ? "1 note is" : base::Grouped(note_count) + " notes are");
}

template <class Element>
std::span<const Element> SkipFirst(std::span<const Element> all, std::uint32_t offset) {
  return all.subspan(std::min<std::size_t>(offset, all.size()));
}

}  // namespace

// What a call keeps while the executor has its task.
struct SearchPipeline::Pending {
  PermittedCollection collection;
  ValidSearch search;
  Method method;
  std::optional<PermittedSnapshot> pinned = std::nullopt;
  // The snapshot of `pinned`; the task searches the rows that pass the filters of `pinned`.
  engine::SnapshotPtr snapshot = nullptr;
  // [search.item_collections]: nothing where there is no content that the call may use
  std::vector<std::optional<PermittedSnapshot>> item_snapshots = {};
  RowShape shape = {};
  std::vector<ResultPage> pages = {};                   // [queries]
  std::unique_ptr<const HitColumns> columns = nullptr;  // of the pages, where they were asked for
  std::string next_page_token = {};     // empty: no next page, or none was asked for
  std::vector<std::string> notes = {};  // of the whole call
  std::string left_out_note = {};       // where the reply has no space for the notes
  std::shared_ptr<const RowMask> unfiltered = nullptr;  // CallReport::unfiltered
  engine::SearchAnswer unsearched = {};                 // where no query can be answered
  // Of Explain.
  std::optional<ExplainedQuery> explained = std::nullopt;
  std::vector<ItemExplanation> explanations = {};
};

SearchPipeline::SearchPipeline(const Parts& parts)
    : parts_(parts), reply_remedy_(ReplyRemedy(parts.limits)) {}

void SearchPipeline::Run(Call& call, PermittedCollection collection, ValidSearch search,
                         Method method) const {
  call.SetReplyLimit(search.answer.reply_bytes_max,
                     search.explained_ids.empty() ? reply_remedy_ : kExplainRemedy);
  const absl::Status status = Guarded([&]() -> absl::Status {
    const auto pending = std::make_shared<Pending>(Pending{
        .collection = std::move(collection), .search = std::move(search), .method = method});
    const auto submitted = Submit(call, pending);
    if (!submitted.ok() || *submitted) return submitted.status();
    const auto resolve = [this, &call, pending] {
      const absl::Status again = Guarded([&] {
        // The call may have waited long.
        absl::Status wanted = MakeLongWork(call, Deadline(call), parts_.clock, kStep).Ask();
        return wanted.ok() ? Submit(call, pending).status() : wanted;
      });
      if (!again.ok()) Refuse(call, again);
    };
    const ValidSearch& waiting = pending->search;
    return PostToWorkers(parts_.workers, resolve,
                         {.caller = call.caller(),
                          .waiting_bytes = waiting.request_bytes +
                                           waiting.queries.size() * sizeof(engine::QueryRequest)});
  });
  if (!status.ok()) Refuse(call, status);
  // Otherwise the executor or a worker finishes the call.
}

absl::StatusOr<bool> SearchPipeline::Submit(Call& call,
                                            const std::shared_ptr<Pending>& pending) const {
  const ValidSearch& search = pending->search;
  const bool on_io_thread = net::OnLoopThread();
  auto pinned = Pin(pending->collection, search);
  if (!pinned.ok()) return pinned.status();
  pending->pinned = *std::move(pinned);
  const auto filtered = pending->pinned->RowsThatPass(search.answer.required_filter);
  pending->snapshot = filtered.snapshot;
  const engine::Snapshot& snapshot = *pending->snapshot;
  auto others = PinItemCollections(call, *pending);
  if (!others.ok()) return others.status();

  auto task = std::make_unique<engine::SearchTask>();
  task->snapshot = pending->snapshot;
  task->arrived_at = call.arrived_at();
  task->deadline = Deadline(call);
  task->cancelled = call.cancelled();
  task->priority = search.priority;
  task->time_device =
      search.receipt == ReceiptDetail::kTimed && pending->collection.sees_all_rows();
  const engine::CallOptions options{RepeatedFieldName(pending->method),
                                    search.exclude_ids,
                                    search.allow_ids,
                                    filtered.filters,
                                    *std::move(others),
                                    search.partial,
                                    search.query_index};
  engine::CallReport report = search.report;  // a worker may have to begin anew
  base::LongWork work = on_io_thread ? base::LongWork::Brief()
                                     : MakeLongWork(call, task->deadline, parts_.clock, kStep);
  absl::Status resolved = ShapeRows(work, *pending);
  if (resolved.ok()) {
    resolved = engine::ResolveQueries(snapshot, search.queries, options, work, *task, report);
  }
  if (resolved.ok() && !search.explained_ids.empty()) {
    resolved = CheckExplained(options, work, *task, *pending);
  }
  if (work.is_too_long()) return false;
  if (!resolved.ok()) return resolved;
  pending->pages = StartPages(search, task->queries, report, call.request_id(), snapshot);
  // Callers who do not see all rows get no values of other rows.
  if (pending->collection.sees_all_rows() && search.answer.required_filter.empty()) {
    base::LongWork hint_work = base::LongWork::Within(base::LongWork::kHintNs);
    base::LongWork& budget = on_io_thread ? work : hint_work;
    AddNearValues(search.queries, snapshot, budget, pending->pages).IgnoreError();
    if (work.is_too_long()) return false;
  }
  if (pending->method == Method::kRecommend) AddUsers(search.queries, report, pending->pages);
  pending->notes = std::move(report.notes);
  pending->unfiltered = std::move(report.unfiltered);
  task->reply_bytes_estimate = EstimateReplyBytes(task->queries, pending->shape, snapshot);
  task->request_bytes = KeepForReply(pending->search);
  call.ReleaseRequest();
  if (task->queries.empty()) {
    FinishWithReply(call, [&] { return BuildReplyWithoutSearch(call, *pending); });
    return true;
  }
  task->done = [this, &call, pending](const absl::StatusOr<engine::SearchAnswer>& answer) {
    SendAnswer(call, answer, *pending);
  };
  // The tasks that arrive at a loop together are queued and run together, before the loop waits.
  absl::Status submitted = on_io_thread ? parts_.executor.Gather(std::move(task), arrivals())
                                        : parts_.executor.Submit(std::move(task));
  if (!submitted.ok()) return submitted;
  return true;
}

engine::TaskList& SearchPipeline::arrivals() {
  thread_local engine::TaskList tasks;
  return tasks;
}

void SearchPipeline::SendAnswer(Call& call, const absl::StatusOr<engine::SearchAnswer>& answer,
                                Pending& pending) const {
  CountRefusal(parts_.metrics, answer.status());
  // Making the error, too, may run out of memory, so it is done under FinishWithReply.
  const auto finish = [&](auto build) {
    FinishWithReply(call, [&]() -> decltype(build()) {
      if (!answer.ok()) return WithDeadline(answer.status(), call);
      return build();
    });
  };
  if (pending.explained) {
    finish([&] { return BuildExplanation(call, *answer, pending); });
  } else {
    finish([&] { return BuildReply(call, *answer, pending); });
  }
}

absl::Status SearchPipeline::ShapeRows(base::LongWork& work, Pending& pending) {
  const AnswerOptions& answer = pending.search.answer;
  const auto own = pending.pinned->Own(work);
  if (!own.ok()) return own.status();
  auto payload = SelectPayload({"options.payload"}, pending.collection.name(), *answer.payload,
                               pending.snapshot->dataset->payload, own->rows.fields());
  if (!payload.ok()) return payload.status();
  pending.shape = {*std::move(payload), answer.with_vectors,
                   answer.with_rows && pending.collection.sees_all_rows()};
  return absl::OkStatus();
}

absl::Status SearchPipeline::CheckExplained(const engine::CallOptions& options,
                                            base::LongWork& work, engine::SearchTask& task,
                                            Pending& pending) {
  const engine::QueryRequest& request = pending.search.queries.front();
  auto items =
      engine::CheckItems(*pending.snapshot, request, options, pending.search.explained_ids, work);
  if (!items.ok()) return items.status();
  engine::ResolvedQuery& query = task.queries.front();
  query.explained = engine::ComparableRows(*items);
  pending.explained.emplace(*std::move(items), engine::AnswerCriteria(query, request));
  return absl::OkStatus();
}

void SearchPipeline::Refuse(Call& call, const absl::Status& status) const {
  CountRefusal(parts_.metrics, status);
  call.Finish(WithDeadline(status, call));
}

absl::StatusOr<PermittedSnapshot> SearchPipeline::Pin(const PermittedCollection& collection,
                                                      const ValidSearch& search) const {
  const std::optional<PageToken>& token = search.paging.token;
  auto pinned = token ? parts_.snapshots.PinContent(collection, token->snapshot_id)
                      : parts_.snapshots.Pin(collection);
  if (!pinned.ok()) return pinned;
  absl::Status expected =
      CheckSnapshotId({"options.expected_snapshot_id"}, search.answer.expected_snapshot_id,
                      collection.name(), pinned->id());
  if (!expected.ok()) return expected;
  return pinned;
}

absl::StatusOr<PermittedSnapshot> SearchPipeline::PinItemCollection(Call& call,
                                                                    const ValidSearch& search,
                                                                    std::size_t index) const {
  const std::string& name = search.item_collections[index];
  const auto collection = call.access().Permit(name);
  if (!collection.ok()) return collection.status();
  if (!search.paging.token) return parts_.snapshots.Pin(*collection);
  const std::string& id = search.paging.token->item_snapshot_ids[index];
  if (!id.empty()) return parts_.snapshots.PinContent(*collection, id);
  return base::Error(
      base::ErrorReason::kCollectionNotFound,
      fmt::format("{} had no content when the first page was answered", base::Quoted(name)));
}

absl::StatusOr<engine::OtherCollections> SearchPipeline::PinItemCollections(
    Call& call, Pending& pending) const {
  const ValidSearch& search = pending.search;
  const std::vector<std::string>& names = search.item_collections;
  engine::OtherCollections others;
  pending.item_snapshots.assign(names.size(), std::nullopt);
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto pinned = PinItemCollection(call, search, i);
    if (!pinned.ok()) {
      // The content that answered the first page must answer every page.
      const std::optional<PageToken>& token = search.paging.token;
      if (token && !token->item_snapshot_ids[i].empty()) return pinned.status();
      others.emplace(names[i], pinned.status());
      continue;
    }
    const PermittedSnapshot& kept = pending.item_snapshots[i].emplace(*std::move(pinned));
    const auto filtered = kept.RowsThatPass(search.answer.required_filter);
    others.emplace(names[i], engine::OtherCollection{filtered.snapshot.get(), filtered.filters});
  }
  return others;
}

void SearchPipeline::FillPages(const engine::SearchAnswer& answer, Pending& pending) const {
  std::size_t answered = 0;
  for (ResultPage& page : pending.pages) {
    if (!page.error.empty()) continue;
    const engine::QueryResult& result = answer.results[answered++];
    page.found_count = std::max(result.hits.size(), result.groups.size());
    page.hits = SkipFirst(result.hits.span(), page.offset);
    page.groups = SkipFirst(std::span(result.groups), page.offset);
    if (page.cold_start) {
      page.unlisted_count = std::min(page.hits.size(), result.hits.size() - result.listed_count);
    }
  }
  pending.next_page_token = NextPageToken(pending);
  AddAnswerNotes({.search = pending.search,
                  .limits = parts_.limits,
                  .sees_all_rows = pending.collection.sees_all_rows(),
                  .device_answered = answer.receipt.device_us.has_value(),
                  .has_next_page = !pending.next_page_token.empty(),
                  .unfiltered = pending.unfiltered.get(),
                  .row_count = pending.snapshot->row_count()},
                 pending.pages, pending.notes);
}

ReceiptParts SearchPipeline::MakeReceiptParts(const Call& call, const engine::SearchAnswer& answer,
                                              const Pending& pending) const {
  return {.snapshot = *pending.snapshot,
          .receipt = answer.receipt,
          .item_snapshots = pending.item_snapshots,
          .is_brief = pending.search.receipt == ReceiptDetail::kBrief,
          .sees_all_rows = pending.collection.sees_all_rows(),
          .sees_all_collections = pending.collection.sees_all_collections(),
          .request_id = call.request_id(),
          .total_us = Microseconds(parts_.clock.Now() - call.arrived_at())};
}

absl::StatusOr<ExplainReply> SearchPipeline::BuildExplanation(const Call& call,
                                                              const engine::SearchAnswer& answer,
                                                              Pending& pending) const {
  FillPages(answer, pending);
  const ResultPage& page = pending.pages.front();
  std::ranges::copy(page.notes, std::back_inserter(pending.notes));
  const engine::QueryResult& result = answer.results.front();
  auto explanations = ExplainItems(*pending.snapshot, result, *pending.explained);
  if (!explanations.ok()) return explanations.status();
  pending.explanations = *std::move(explanations);
  ExplainReply reply({.explanations = pending.explanations,
                      .criteria = pending.explained->criteria,
                      .score_kind = page.score_kind,
                      .score_needed = pending.explained->criteria.ScoreNeeded(result.places),
                      .receipt = MakeReceiptParts(call, answer, pending),
                      .notes = pending.notes},
                     parts_.limits.reply_bytes_max);
  absl::Status fits = CheckReplySize(reply, pending.search.answer.reply_bytes_max, kExplainRemedy);
  if (!fits.ok()) return fits;
  parts_.metrics.RecordAnswer(call.method(), 1, answer.receipt.cost);
  return reply;
}

absl::StatusOr<SearchReply> SearchPipeline::BuildReply(const Call& call,
                                                       const engine::SearchAnswer& answer,
                                                       Pending& pending) const {
  FillPages(answer, pending);
  if (pending.search.as_columns) {
    const std::uint64_t bytes_max = parts_.limits.reply_bytes_max;
    pending.columns =
        HitColumns::Create(*pending.snapshot, pending.shape, pending.collection.sees_all_rows(),
                           pending.pages, bytes_max);
    if (pending.columns == nullptr) {
      return ReplyTooLargeToBuild(bytes_max, pending.search.answer.reply_bytes_max, reply_remedy_);
    }
  }
  SearchReply reply = EncodeReply(call,
                                  {.shape = pending.shape,
                                   .pages = pending.pages,
                                   .columns = pending.columns.get(),
                                   .receipt = MakeReceiptParts(call, answer, pending),
                                   .next_page_token = pending.next_page_token,
                                   .notes = pending.notes},
                                  pending);
  absl::Status fits = CheckReplySize(reply, pending.search.answer.reply_bytes_max, reply_remedy_);
  if (!fits.ok()) return fits;
  if (!pending.next_page_token.empty()) {
    parts_.snapshots.Lease(*pending.pinned, parts_.limits.page_lease);
    for (const auto& of_items : pending.item_snapshots) {
      if (of_items) parts_.snapshots.Lease(*of_items, parts_.limits.page_lease);
    }
  }
  parts_.metrics.RecordAnswer(call.method(), answer.results.size(), answer.receipt.cost);
  parts_.metrics.CountFailedQueries(call.method(), pending.pages.size() - answer.results.size());
  return reply;
}

SearchReply SearchPipeline::EncodeReply(const Call& call, SearchReply::Parts parts,
                                        Pending& pending) const {
  const std::uint64_t counted_max = parts_.limits.reply_bytes_max;
  const auto fits = [&](const SearchReply& reply) {
    return call.BytesWith(reply) <= pending.search.answer.reply_bytes_max;
  };
  SearchReply whole(parts, counted_max);
  const std::uint64_t note_count = NoteCount(parts);
  if (note_count == 0 || fits(whole)) return whole;
  parts.instead_of_notes = "";
  SearchReply bare(parts, counted_max);
  if (!fits(bare)) return whole;  // its size is what the error names
  pending.left_out_note = LeftOutText(note_count);
  parts.instead_of_notes = pending.left_out_note;
  SearchReply noted(parts, counted_max);
  if (!fits(noted)) return bare;
  return noted;
}

absl::StatusOr<SearchReply> SearchPipeline::BuildReplyWithoutSearch(const Call& call,
                                                                    Pending& pending) const {
  // `unsearched` lives as long as the reply, which borrows its receipt.
  pending.unsearched.receipt = parts_.executor.ReceiptWithoutSearch(*pending.snapshot);
  return BuildReply(call, pending.unsearched, pending);
}

std::string SearchPipeline::NextPageToken(const Pending& pending) const {
  const Paging& paging = pending.search.paging;
  if (!paging.wanted) return {};
  bool any_full = false;
  for (std::size_t i = 0; i < pending.pages.size(); ++i) {
    const engine::QueryRequest& query = pending.search.queries[i];
    const ResultPage& page = pending.pages[i];
    if (!page.error.empty()) continue;
    any_full = any_full || std::max(page.hits.size(), page.groups.size()) == query.k;
    const std::uint64_t skipped = std::uint64_t{query.offset} + query.k;
    if (!CheckReach({}, skipped, query, parts_.limits).ok()) return {};
  }
  if (!any_full) return {};
  if (paging.token) {
    PageToken next = *paging.token;
    ++next.page;
    return WritePageToken(next);
  }
  PageToken token{
      .snapshot_id = pending.snapshot->id, .page = 1, .request_hash = paging.request_hash};
  for (const auto& of_items : pending.item_snapshots) {
    token.item_snapshot_ids.push_back(of_items ? of_items->id() : std::string());
  }
  return WritePageToken(token);
}

absl::Status SearchPipeline::WithDeadline(const absl::Status& status, const Call& call) const {
  if (!absl::IsDeadlineExceeded(status)) return status;
  const auto milliseconds = [](std::chrono::milliseconds limit) {
    return fmt::format("{} ms", base::Grouped(static_cast<std::uint64_t>(limit.count())));
  };
  const Limits& limits = parts_.limits;
  const auto wanted = call.deadline();
  std::string which;
  if (!wanted) {
    which = fmt::format("the call set none, and limits.search_deadline_default is {}",
                        milliseconds(limits.search_deadline_default));
  } else if (*wanted > call.arrived_at() + limits.search_deadline_max) {
    which = fmt::format("limits.search_deadline_max is {}, though the call allowed more",
                        milliseconds(limits.search_deadline_max));
  } else {
    return status;
  }
  return base::WithMessage(status, fmt::format("{}; {}", std::string(status.message()), which));
}

Clock::TimePoint SearchPipeline::Deadline(const Call& call) const {
  const Limits& limits = parts_.limits;
  const Clock::TimePoint latest = call.arrived_at() + limits.search_deadline_max;
  const auto wanted = call.deadline();
  return wanted ? std::min(*wanted, latest) : call.arrived_at() + limits.search_deadline_default;
}

}  // namespace simile::service
