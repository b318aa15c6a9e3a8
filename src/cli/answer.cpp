#include "cli/answer.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/answer_json.h"
#include "cli/answer_table.h"
#include "cli/client_flags.h"
#include "cli/command_line.h"
#include "cli/errors.h"
#include "cli/flag_names.h"
#include "simile/limits.h"

namespace simile::cli {
namespace {

constexpr std::uint32_t kDefaultK = 10;

// The offset of the hits after these; nothing where a server refuses as many more, and on the last
// page.
std::optional<std::uint32_t> NextOffset(const QueryFlags& flags) {
  if (flags.paged || flags.page_token) return std::nullopt;
  if (flags.diversity) return std::nullopt;  // it chooses from its candidates alone
  const std::uint32_t k = flags.k.value_or(kDefaultK);
  const std::uint64_t next = std::uint64_t{flags.offset.value_or(0)} + k;
  if ((next + k) * flags.group_size.value_or(1) > kHitsMax) return std::nullopt;
  return static_cast<std::uint32_t>(next);
}

// Notes and errors name the fields of requests; who uses the program knows its flags.
void TellInFlags(std::string_view command, Answer& answer) {
  for (std::string& note : answer.notes) note = NoteInFlags(note, command);
  for (AnsweredQuery& query : answer.results) {
    for (std::string& note : query.notes) note = NoteInFlags(note, command);
    if (!query.error.ok()) query.error = InFlags(query.error, command);
  }
}

}  // namespace

void MoveResult(v1::SearchResult& from, AnsweredQuery& query) {
  if (from.has_rows_passing()) query.rows_passing = from.rows_passing();
  query.hits.Swap(from.mutable_hits());
  query.groups.Swap(from.mutable_groups());
  query.score_kind = from.score_kind();
  if (from.has_cold_start()) query.cold_start = from.cold_start();
  query.notes = {from.notes().begin(), from.notes().end()};
  if (from.has_error()) query.error = StatusOf(from.error());
}

std::string SuggestionAfter(const Answer& answer, const QueryFlags& flags) {
  if (answer.results.empty()) return "";
  if (!answer.next_page_token.empty()) return "";  // the table prints the token
  const AnsweredQuery& first = answer.results.front();
  const auto next = [&](const std::string& words) {
    return NextCommand(words, flags.client, flags.collection);
  };
  if (first.hits.empty() && first.groups.empty()) {
    return first.rows_passing == 0 ? next("fields") : "";
  }
  const auto found = static_cast<std::uint32_t>(std::max(first.hits.size(), first.groups.size()));
  if (found >= flags.k.value_or(kDefaultK)) {
    if (const auto offset = NextOffset(flags)) {
      return fmt::format("--offset {} shows the next ones", *offset);
    }
  }
  const v1::Hit& best = first.hits.empty() ? first.groups[0].hits(0) : first.hits[0];
  return next(fmt::format("fetch {}", ListFlag("--id", best.id())));
}

int ShowAnswer(Answer answer, const QueryFlags& flags) {
  if (flags.client.command != nullptr) TellInFlags(flags.client.command->name, answer);
  const bool all_failed = std::ranges::none_of(
      answer.results, [](const AnsweredQuery& query) { return query.error.ok(); });
  const int code = all_failed ? kFailed : kSucceeded;
  if (flags.client.json) {
    fmt::print("{}", AnswerJson(answer));
    return code;
  }
  fmt::print("{}", AnswerTable(answer, flags, StandardOutput()));
  const std::string suggestion = SuggestionAfter(answer, flags);
  if (!suggestion.empty()) SuggestNext(suggestion);
  return code;
}

}  // namespace simile::cli
