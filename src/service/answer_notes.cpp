#include "service/answer_notes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "base/message_text.h"
#include "service/validate_refinement.h"

namespace simile::service {
namespace {

// Of cosines, their rounding and the length of vectors marked as stored included.
constexpr float kScoreMax = 1.0001F;

std::size_t FoundIn(const ResultPage& page) {
  return std::max(page.hits.size(), page.groups.size());
}

// The last rank that the page has when it is full.
std::uint64_t LastRank(const query::QueryRequest& query) {
  return std::uint64_t{query.offset} + query.k;
}

// "passes the filter and scores 0.9 or more"
std::string ConditionText(const query::QueryRequest& query, const ResultPage& page) {
  std::string text;
  if (page.filtered) text = "passes the filter";
  if (std::isfinite(query.score_threshold) && !page.cold_start) {
    text += fmt::format("{}scores {} or more", text.empty() ? "" : " and ", query.score_threshold);
    const bool bounded =
        page.score_kind == v1::SCORE_KIND_COSINE || page.score_kind == v1::SCORE_KIND_BEST_SCORE;
    if (bounded && query.score_threshold > kScoreMax) text += "; such scores are at most 1";
  }
  return text.empty() ? "can be returned" : text;
}

// Why there are fewer hits or groups than the query asked for.
std::string ShortageText(const query::QueryRequest& query, const ResultPage& page) {
  const std::string_view noun = query.group_by ? "group" : "hit";
  const std::string begin =
      fmt::format("{}, not {}: ", base::Counted(FoundIn(page), noun), base::Grouped(query.k));
  const std::string condition = ConditionText(query, page);
  if (page.filtered && page.rows_passing == 0) return begin + "no row passes the filter";
  if (FoundIn(page) == 0 && query.offset > 0) {
    return fmt::format("{}offset {} skips every {}", begin, base::Grouped(query.offset),
                       query.group_by ? fmt::format("group with a row that {}", condition)
                                      : fmt::format("row that {}", condition));
  }
  const std::string_view other = FoundIn(page) == 0 ? "" : "other ";
  return query.group_by ? fmt::format("{}no {}group has a row that {}", begin, other, condition)
                        : fmt::format("{}no {}row {}", begin, other, condition);
}

void AddGroupSizeNote(const query::QueryRequest& query, ResultPage& page) {
  const std::uint32_t wanted = query.group_by->group_size;
  const auto small = static_cast<std::uint64_t>(std::ranges::count_if(
      page.groups, [&](const engine::HitGroup& group) { return group.hits.size() < wanted; }));
  if (small == 0) return;
  page.notes.push_back(fmt::format(
      "{} of {} {} fewer than the {} hits of group_size: no other row of "
      "{} {}",
      base::Grouped(small), base::Counted(page.groups.size(), "group"), small == 1 ? "has" : "have",
      base::Grouped(wanted), small == 1 ? "it" : "theirs", ConditionText(query, page)));
}

// Says which hits of a cold start are in no order.
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
std::string EndText(const query::QueryRequest& query, const Limits& limits, std::string_view rest) {
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

bool CanGoOn(const query::QueryRequest& query, const Limits& limits) {
  return CheckReach({}, LastRank(query), query, limits).ok();
}

// Says that the pages end before the rows do.
//   rows_max  that the query may return
void AddEndNote(const AnswerFacts& facts, const std::vector<ResultPage>& pages,
                const query::QueryRequest& query, std::uint64_t rows_max, ResultPage& page) {
  if (FoundIn(page) < query.k || LastRank(query) >= rows_max) return;
  const std::string rest =
      fmt::format("up to {} follow", base::Counted(rows_max - LastRank(query), "row"));
  if (!CanGoOn(query, facts.limits)) {
    page.notes.push_back(EndText(query, facts.limits, rest));
    return;
  }
  std::size_t other = 0;
  while (!pages[other].error.empty() || CanGoOn(facts.search.queries[other], facts.limits)) ++other;
  page.notes.push_back(
      fmt::format("the pages end at rank {}, since those of queries[{}] do, and {}: ask for this "
                  "query in a call "
                  "of its own",
                  base::Grouped(LastRank(query)), other, rest));
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
  std::size_t answered = 0;
  for (std::size_t index = 0; index < pages.size(); ++index) {
    ResultPage& page = pages[index];
    if (!page.error.empty()) continue;
    const std::size_t number = answered++;
    const query::QueryRequest& query = facts.search.queries[index];
    const Paging& paging = facts.search.paging;
    if (FoundIn(page) < query.k && !paging.token) {
      page.notes.push_back(ShortageText(query, page));
    }
    if (query.group_by) AddGroupSizeNote(query, page);
    if (page.unlisted_count > 0) page.notes.push_back(UnlistedText(page));
    if (!paging.wanted || facts.has_next_page) continue;
    AddEndNote(facts, pages, query, facts.rows_max[number], page);
  }
}

}  // namespace simile::service
