#include "cli/answer_table.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/message_text.h"
#include "cli/errors.h"
#include "cli/item_columns.h"
#include "cli/output_text.h"
#include "cli/receipt_text.h"
#include "cli/table.h"

namespace simile::cli {
namespace {

// One choice for the whole answer, so that the tables of its queries look alike.
ItemColumns ColumnsOf(const Answer& answer, const QueryFlags& flags) {
  std::vector<ItemView> items;
  for (const AnsweredQuery& result : answer.results) {
    for (const v1::Hit& hit : result.hits) items.push_back(ViewOf(hit));
    for (const v1::HitGroup& group : result.groups) {
      for (const v1::Hit& hit : group.hits()) items.push_back(ViewOf(hit));
    }
  }
  return ChooseItemColumns(items, flags.fields);
}

// A table of hits, or of groups of hits; a group's first row starts with its keyword.
class ResultTable {
 public:
  ResultTable(const AnsweredQuery& result, const ItemColumns& columns)
      : result_(result), columns_(columns), table_(Layout(result, columns)) {
    for (const v1::Hit& hit : result.hits) AddHit(std::to_string(hit.rank()), "", hit);
    for (const v1::HitGroup& group : result.groups) {
      for (const v1::Hit& hit : group.hits()) {
        const bool first = &hit == &group.hits(0);
        AddHit(first ? std::to_string(group.rank()) : "", first ? group.keyword() : "", hit);
      }
    }
  }

  bool empty() const { return table_.empty(); }
  std::string Text(const Terminal& terminal) const { return table_.Render(terminal, 2); }

 private:
  static std::vector<Table::Column> Layout(const AnsweredQuery& result,
                                           const ItemColumns& columns) {
    const auto heading = [&](const std::string& text) { return columns.with_headings ? text : ""; };
    std::vector<Table::Column> layout{{heading("rank"), Align::kRight}};
    if (!result.groups.empty()) layout.push_back({heading("group"), Align::kLeft, true});
    // Cold-start rows have no score.
    if (!result.cold_start) layout.push_back({heading("score"), Align::kRight});
    AddItemColumns(columns, layout);
    return layout;
  }

  void AddHit(const std::string& rank, const std::string& keyword, const v1::Hit& hit) {
    std::vector<std::string> cells{rank};
    if (!result_.groups.empty()) cells.push_back(keyword);
    if (!result_.cold_start) cells.push_back(fmt::format("{:.4f}", hit.score()));
    AddItemCells(columns_, ViewOf(hit), cells);
    table_.AddRow(std::move(cells));
  }

  const AnsweredQuery& result_;
  const ItemColumns& columns_;
  Table table_;
};

// Why a query has no hits.
std::string NoHitsText(const AnsweredQuery& result, const QueryFlags& flags) {
  if (!result.notes.empty()) return "no hits";  // a note says why
  if (result.rows_passing == 0) return "no rows pass the filter";
  std::string text = "no hits";
  if (flags.offset.value_or(0) > 0) {
    text += fmt::format(" after the first {}", base::Grouped(*flags.offset));
  }
  // A cold start has no scores to compare.
  if (flags.score_threshold && !result.cold_start) {
    text += fmt::format(" score {} or more", *flags.score_threshold);
  }
  return text;
}

// Says what the scores are where they are not the metric's; empty where they are.
std::string ScoresText(v1::ScoreKind kind) {
  switch (kind) {
    case v1::SCORE_KIND_BEST_SCORE:
      return " (scores are of best_score, -1 to 1)";
    case v1::SCORE_KIND_SUM_SCORES:
      return " (scores are sums over the examples)";
    default:
      return "";
  }
}

// How many rows pass the filter, if that is the same for all queries.
std::optional<std::uint64_t> CommonRowsPassing(const Answer& answer) {
  if (answer.results.empty()) return std::nullopt;
  const auto first = answer.results.front().rows_passing;
  const bool common = std::ranges::all_of(
      answer.results, [&](const AnsweredQuery& result) { return result.rows_passing == first; });
  return common ? first : std::nullopt;
}

}  // namespace

std::string AnswerTable(const Answer& answer, const QueryFlags& flags, const Terminal& terminal) {
  const ItemColumns columns = ColumnsOf(answer, flags);
  std::string text;
  for (const AnsweredQuery& result : answer.results) {
    text += Bold(Printable(result.heading), terminal) + ScoresText(result.score_kind) + '\n';
    if (!result.error.ok()) {
      text += fmt::format("  error: {}\n", Printable(ErrorText(result.error)));
      continue;
    }
    const ResultTable table(result, columns);
    text += table.empty() ? fmt::format("  {}\n", NoHitsText(result, flags)) : table.Text(terminal);
    for (const std::string& note : result.notes)
      text += fmt::format("  note: {}\n", Printable(note));
  }
  for (const std::string& note : answer.notes) text += fmt::format("note: {}\n", Printable(note));
  const std::string line =
      ReceiptLine(answer.receipt, answer.backend_reason, CommonRowsPassing(answer));
  text += Dim(Printable(line), terminal) + '\n';
  if (flags.whole_receipt) text += ReceiptTable(answer.receipt, terminal);
  if (!answer.next_page_token.empty()) text += "next page: " + answer.next_page_token + '\n';
  return text;
}

}  // namespace simile::cli
