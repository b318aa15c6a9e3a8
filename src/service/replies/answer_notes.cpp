#include "service/replies/answer_notes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/message_text.h"
#include "filter/suggestions.h"
#include "service/requests/validate_query.h"

namespace simile::service {
namespace {

// The greatest cosine, with rounding, and with the length that vectors marked as stored may have.
constexpr float kScoreMax = 1.0001F;

std::size_t FoundIn(const ResultPage& page) {
  return std::max(page.hits.size(), page.groups.size());
}

// The last rank that the page has when it is full.
std::uint64_t LastRank(const engine::QueryRequest& query) {
  return std::uint64_t{query.offset} + query.k;
}

// The rows of a call without filters and exclusions. Counted when first asked for, once.
class UnfilteredRows {
 public:
  explicit UnfilteredRows(const AnswerFacts& facts) : facts_(facts) {}

  std::uint64_t count() {
    if (!count_) {
      count_ = facts_.unfiltered == nullptr ? facts_.row_count : facts_.unfiltered->AllowedCount();
    }
    return *count_;
  }
  // Whether the call's list of allowed ids leaves rows out.
  bool are_listed() { return facts_.search.allow_ids && count() < facts_.row_count; }

 private:
  const AnswerFacts& facts_;
  std::optional<std::uint64_t> count_;
};

// The rows that pass the query's filter, if it has one.
std::uint64_t PassingRows(const ResultPage& page, UnfilteredRows& all) {
  return page.rows_passing ? *page.rows_passing : all.count();
}

// The rows that the query may return, whatever they score.
std::uint64_t RowsMax(const ResultPage& page, UnfilteredRows& all) {
  return PassingRows(page, all) - page.excluded_count;
}

// Why an answer may have fewer rows than were asked for.
struct Causes {
  bool list = false;           // some rows are not in allow_ids
  bool filter = false;         // some rows do not pass it
  bool threshold = false;      // some rows may score less
  bool unreachable = false;    // no row can score as much as the threshold
  std::uint64_t excluded = 0;  // excluded rows that pass the filter
};

//   may_lack_rows  false: every row or group that passes otherwise was found, so the threshold took
//                  none
Causes FindCauses(const engine::QueryRequest& query, const ResultPage& page, UnfilteredRows& all,
                  bool may_lack_rows) {
  Causes causes;
  causes.threshold =
      may_lack_rows && std::isfinite(query.score_threshold) && !page.cold_start.has_value();
  const bool bounded =
      page.score_kind == v1::SCORE_KIND_COSINE || page.score_kind == v1::SCORE_KIND_BEST_SCORE;
  causes.unreachable = causes.threshold && bounded && query.score_threshold > kScoreMax;
  if (causes.unreachable) return causes;
  causes.list = all.are_listed();
  causes.filter = page.filtered && PassingRows(page, all) < all.count();
  causes.excluded = page.excluded_count;
  return causes;
}

// "passes the filter and scores 0.9 or more, 2 excluded rows aside"
std::string ConditionText(const engine::QueryRequest& query, const Causes& causes) {
  std::vector<std::string> parts;
  if (causes.list) parts.emplace_back("is in options.allow_ids");
  if (causes.filter) parts.emplace_back("passes the filter");
  if (causes.threshold) parts.push_back(fmt::format("scores {} or more", query.score_threshold));
  std::string text = fmt::format("{}", fmt::join(parts, " and "));
  if (causes.unreachable) text += "; such scores are at most 1";
  // For groups it is not known whether the excluded rows would form another group.
  if (text.empty() && causes.excluded > 0 && !query.group_by) {
    return fmt::format("can be returned: {} {} excluded", base::Counted(causes.excluded, "row"),
                       causes.excluded == 1 ? "is" : "are");
  }
  if (text.empty()) text = "can be returned";
  if (causes.excluded > 0) {
    text += fmt::format(", {} aside", base::Counted(causes.excluded, "excluded row"));
  }
  return text;
}

// Why there are fewer groups than the query asked for: the condition that no row of another group
// meets. Whether another group exists is not said: for a caller who does not see all rows it is not
// known.
std::string GroupShortageText(const engine::QueryRequest& query, const ResultPage& page,
                              UnfilteredRows& all) {
  const std::string condition = ConditionText(query, FindCauses(query, page, all, true));
  if (page.groups.empty() && page.found_count > 0) {
    return fmt::format("offset {} skips every group with a row that {}",
                       base::Grouped(query.offset), condition);
  }
  return fmt::format("no {}group has a row that {}", page.groups.empty() ? "" : "other ",
                     condition);
}

// Why there are fewer hits than the query asked for.
std::string HitShortageText(const engine::QueryRequest& query, const ResultPage& page,
                            UnfilteredRows& all) {
  const bool lacks_rows = page.found_count < RowsMax(page, all);
  Causes causes = FindCauses(query, page, all, lacks_rows);
  if (page.hits.empty() && page.found_count > 0) {
    if (!causes.list && !causes.filter && !causes.threshold)
      causes.excluded = 0;  // excluded rows cannot be returned
    return fmt::format("offset {} skips every row that {}", base::Grouped(query.offset),
                       ConditionText(query, causes));
  }
  return fmt::format("no {}row {}", page.hits.empty() ? "" : "other ",
                     ConditionText(query, causes));
}

// Why there are fewer hits or groups than the query asked for.
std::string ShortageText(const engine::QueryRequest& query, const ResultPage& page,
                         UnfilteredRows& all) {
  const std::string begin =
      fmt::format("{}, not {}: ", base::Counted(FoundIn(page), query.group_by ? "group" : "hit"),
                  base::Grouped(query.k));
  if (all.count() == 0 && all.are_listed()) return begin + "options.allow_ids allows no row";
  if (page.filtered && page.rows_passing == 0 && all.count() > 0) {
    return begin + (all.are_listed() ? "no row of options.allow_ids passes the filter"
                                     : "no row passes the filter");
  }
  return begin +
         (query.group_by ? GroupShortageText(query, page, all) : HitShortageText(query, page, all));
}

void AddGroupSizeNote(const engine::QueryRequest& query, UnfilteredRows& all, ResultPage& page) {
  const std::uint32_t wanted = query.group_by->group_size;
  const auto small = static_cast<std::uint64_t>(std::ranges::count_if(
      page.groups, [&](const engine::HitGroup& group) { return group.hits.size() < wanted; }));
  if (small == 0) return;
  page.notes.push_back(fmt::format(
      "{} of {} {} fewer than the {} hits of group_size: no other row of {} {}",
      base::Grouped(small), base::Counted(page.groups.size(), "group"), small == 1 ? "has" : "have",
      base::Grouped(wanted), small == 1 ? "this group" : "these groups",
      ConditionText(query, FindCauses(query, page, all, true))));
}

// Says how many hits of a cold start have no value to be ordered by.
std::string UnlistedText(const ResultPage& page) {
  const bool one = page.unlisted_count == 1;
  const std::string what =
      page.cold_start->field.empty()
          ? fmt::format("{} been seen by no user", one ? "has" : "have")
          : fmt::format("{} no {}", one ? "has" : "have", page.cold_start->field);
  return fmt::format("cold_start: {} of {} {}, and {} last in the order of rows",
                     base::Grouped(page.unlisted_count), base::Counted(page.hits.size(), "hit"),
                     what, one ? "comes" : "come");
}

// Why no page follows the last one of a query, and what to do.
//   rest  "up to 1,999 rows follow"
std::string EndText(const engine::QueryRequest& query, const Limits& limits,
                    std::string_view rest) {
  const std::string last = base::Grouped(LastRank(query));
  if (query.diversity && LastRank(query) + query.k > query.diversity->candidates) {
    const bool most = query.diversity->candidates == limits.diversity_candidates_max;
    return fmt::format("the pages end at rank {}, since diversity chooses from {}, and {}: {}",
                       last, base::Counted(query.diversity->candidates, "candidate"), rest,
                       most ? "leave out diversity to reach them"
                            : "raise diversity.candidates, or leave out diversity");
  }
  if (query.group_by) {
    return fmt::format(
        "the pages end at group {}, since groups times group_size are at most {} (limits.k_max), "
        "and "
        "{}: lower group_size, or narrow the filter",
        last, base::Grouped(limits.k_max), rest);
  }
  return fmt::format(
      "the pages end at rank {}, since offset + k is at most {} (limits.k_max), and {}: narrow the "
      "filter to reach them",
      last, base::Grouped(limits.k_max), rest);
}

bool CanGoOn(const engine::QueryRequest& query, const Limits& limits) {
  return CheckReach({}, LastRank(query), query, limits).ok();
}

// What follows the last page, "up to 4,799 rows follow"; empty when nothing does. The number of
// groups that follow is not known: a row can be in several groups, and the caller may see no row of
// some groups.
std::string RestText(const engine::QueryRequest& query, const ResultPage& page,
                     UnfilteredRows& all) {
  if (query.group_by) return "more groups may follow";
  const std::uint64_t count = RowsMax(page, all);
  if (LastRank(query) >= count) return {};
  const std::uint64_t rest = count - LastRank(query);
  return fmt::format("up to {} {}", base::Counted(rest, "row"), rest == 1 ? "follows" : "follow");
}

// Says that the pages end before the rows or groups do.
void AddEndNote(const AnswerFacts& facts, const std::vector<ResultPage>& pages,
                const engine::QueryRequest& query, UnfilteredRows& all, ResultPage& page) {
  if (FoundIn(page) < query.k) return;
  const std::string rest = RestText(query, page, all);
  if (rest.empty()) return;
  if (!CanGoOn(query, facts.limits)) {
    page.notes.push_back(EndText(query, facts.limits, rest));
    return;
  }
  std::size_t other = 0;
  while (!pages[other].error.empty() || CanGoOn(facts.search.queries[other], facts.limits)) ++other;
  page.notes.push_back(fmt::format(
      "the pages end at {} {}, since the pages of queries[{}] end, and {}: ask for this query in "
      "a call of its own",
      query.group_by ? "group" : "rank", base::Grouped(LastRank(query)), other, rest));
}

void AddCallNotes(const AnswerFacts& facts, std::vector<std::string>& notes) {
  if (facts.search.answer.with_rows && !facts.sees_all_rows) {
    notes.push_back(fmt::format("options.with_rows {}", kNoRowsText));
  }
  if (facts.search.receipt != ReceiptDetail::kTimed || facts.device_answered) return;
  notes.push_back(fmt::format(
      "options.receipt_detail adds no device_us: {}",
      facts.sees_all_rows ? "no GPU answered" : "callers with a required filter get none"));
}

}  // namespace

void AddAnswerNotes(const AnswerFacts& facts, std::vector<ResultPage>& pages,
                    std::vector<std::string>& notes) {
  AddCallNotes(facts, notes);
  UnfilteredRows all(facts);
  for (std::size_t index = 0; index < pages.size(); ++index) {
    ResultPage& page = pages[index];
    if (!page.error.empty()) continue;
    const engine::QueryRequest& query = facts.search.queries[index];
    const Paging& paging = facts.search.paging;
    if (FoundIn(page) < query.k && !paging.token) {
      page.notes.push_back(ShortageText(query, page, all));
    }
    if (query.group_by) AddGroupSizeNote(query, all, page);
    if (page.unlisted_count > 0) page.notes.push_back(UnlistedText(page));
    if (!paging.wanted || facts.has_next_page) continue;
    AddEndNote(facts, pages, query, all, page);
  }
}

absl::Status AddNearValues(const std::vector<engine::QueryRequest>& requests,
                           const engine::Snapshot& snapshot, base::LongWork& work,
                           std::vector<ResultPage>& pages) {
  constexpr std::size_t kFiltersMax = 4;
  std::map<std::string_view, std::vector<std::string>> told;  // by filter
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (!pages[i].filtered || pages[i].rows_passing != 0) continue;
    if (told.size() == kFiltersMax && !told.contains(requests[i].filter)) continue;
    const auto [sentences, is_new] = told.try_emplace(requests[i].filter);
    if (is_new) {
      const filter::PayloadView payload(snapshot.filters->payload());
      const auto prepared = snapshot.filters->Prepare(requests[i].filter, payload, work);
      if (!prepared.ok()) return prepared.status();
      auto near = filter::NearValues(prepared->expression, payload, work);
      if (!near.ok()) return near.status();
      sentences->second = *std::move(near);
    }
    std::ranges::copy(sentences->second, std::back_inserter(pages[i].notes));
  }
  return absl::OkStatus();
}

}  // namespace simile::service
