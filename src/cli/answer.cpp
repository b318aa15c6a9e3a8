#include "cli/answer.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/answer_json.h"
#include "cli/answer_table.h"
#include "cli/exit_code.h"

namespace simile::cli {

namespace {

constexpr std::uint32_t kDefaultK = 10;

// When the first query has as many hits as it asked for, more may follow.
void SuggestMore(const Answer& answer, const QueryFlags& flags) {
  const std::uint32_t k = flags.k.value_or(kDefaultK);
  if (flags.client.json || answer.results.empty()) return;
  if (!answer.next_page_token.empty()) return;  // the table prints the token
  const AnsweredQuery& first = answer.results.front();
  if (static_cast<std::uint32_t>(std::max(first.hits.size(), first.groups.size())) < k) return;
  SuggestNext(fmt::format("--offset {} shows the next ones", flags.offset.value_or(0) + k));
}

}  // namespace

void MoveResult(v1::SearchResult& from, AnsweredQuery& query) {
  if (from.has_rows_passing()) query.rows_passing = from.rows_passing();
  query.hits.Swap(from.mutable_hits());
  query.groups.Swap(from.mutable_groups());
  query.score_kind = from.score_kind();
  if (from.has_cold_start()) query.cold_start = from.cold_start();
}

int ShowAnswer(const Answer& answer, const QueryFlags& flags) {
  fmt::print("{}", flags.client.json ? AnswerJson(answer) : AnswerTable(answer, StandardOutput()));
  SuggestMore(answer, flags);
  return kSucceeded;
}

}  // namespace simile::cli
