#include "cli/flag_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "cli/errors.h"

namespace simile::cli {
namespace {

constexpr std::array kFlagNames{
    FlagName{"allow_ids", "--allow", ""},
    FlagName{"allow_shape_change", "--allow-shape-change", ""},
    FlagName{"cold_start", "--cold-start", ""},
    FlagName{"cold_start.field", "--cold-start-field", ""},
    FlagName{"collection", "--collection", ""},
    FlagName{"diversity", "--diversity", ""},
    FlagName{"diversity.candidates", "--candidates", ""},
    FlagName{"exclude_ids", "--exclude", ""},
    FlagName{"exclude_seen", "--exclude-seen", ""},
    FlagName{"expected_snapshot_id", "--expect-snapshot", ""},
    FlagName{"field", "--field", "lookup"},
    FlagName{"field", "--field", "similar"},
    FlagName{"field", "FIELD", "fields"},
    FlagName{"filter", "--filter", ""},
    FlagName{"folder", "FOLDER", "load"},
    FlagName{"folder", "--folder", "reload"},
    FlagName{"group_by", "--group-by", ""},
    FlagName{"group_by.group_size", "--group-size", ""},
    FlagName{"ids", "--item", "explain"},
    FlagName{"ids", "--id", ""},
    FlagName{"k", "-k", ""},
    FlagName{"limit", "--limit", "lookup"},
    FlagName{"min_overlap", "--min-overlap", ""},
    FlagName{"offset", "--offset", ""},
    FlagName{"partial", "--partial", ""},
    FlagName{"page_token", "--page-token", ""},
    FlagName{"paged", "--paged", ""},
    FlagName{"payload", "--fields", ""},
    FlagName{"queries", "--id", "similar"},
    FlagName{"queries", "--user", "recommend"},
    FlagName{"queries", "--vector", "search"},
    FlagName{"queries[].blend", "--like", ""},
    FlagName{"queries[].blend.item.collection", "--items-of", ""},
    FlagName{"queries[].blend.user_id", "--user", ""},
    FlagName{"priority", "--bulk", ""},
    FlagName{"queries[].blend.user_weight", "--user-weight", ""},
    FlagName{"queries[].examples", "--like and --unlike", ""},
    FlagName{"queries[].examples.negative", "--unlike", ""},
    FlagName{"queries[].examples.negative[].item.collection", "--items-of", ""},
    FlagName{"queries[].examples.positive", "--like", ""},
    FlagName{"queries[].examples.positive[].item.collection", "--items-of", ""},
    FlagName{"queries[].examples.positive[].vector", "--vector", ""},
    FlagName{"queries[].examples.strategy", "--strategy", ""},
    FlagName{"queries[].id", "--id", ""},
    FlagName{"queries[].item", "--id", ""},
    FlagName{"queries[].item.collection", "--items-of", ""},
    FlagName{"queries[].vector", "--vector", ""},
    FlagName{"receipt_detail", "--receipt", ""},
    FlagName{"required_filter", "--required-filter", ""},
    FlagName{"score_threshold", "--score-threshold", ""},
    FlagName{"text", "TEXT", "lookup"},
    FlagName{"text", "--title", "similar"},
    FlagName{"user_ids", "--user", ""},
    FlagName{"values_max", "--values", "fields"},
    FlagName{"with_rows", "--with-rows", ""},
    FlagName{"with_vectors", "--with-vectors", "fetch"},
};

// How to make a command's answer smaller. Replaces the server's advice, which names fields.
struct SmallerAnswer {
  std::string_view command;
  std::string_view advice;
};
constexpr std::string_view kFewerHits =
    "ask for fewer hits with -k, or for fewer payload fields with --fields";
constexpr std::array kSmallerAnswers{
    SmallerAnswer{"search", kFewerHits},
    SmallerAnswer{"similar", kFewerHits},
    SmallerAnswer{"recommend", kFewerHits},
    SmallerAnswer{"explain", "name fewer items with --item"},
    SmallerAnswer{"lookup", "lower --limit, or ask for fewer payload fields with --fields"},
    SmallerAnswer{"fetch",
                  "name fewer ids, ask for fewer payload fields with --fields, or leave out "
                  "--with-vectors"},
    SmallerAnswer{"fields", "lower --values"},
};

// Prefixes that the table leaves out for fields that other requests have too.
constexpr std::array<std::string_view, 2> kShared{"options.", "queries[]."};

// "queries[].id" for "queries[3].id".
std::string WithoutIndices(std::string_view field) {
  std::string path;
  bool in_index = false;
  for (const char c : field) {
    if (c == ']') in_index = false;
    if (!in_index) path += c;
    if (c == '[') in_index = true;
  }
  return path;
}

// The field that contains a field: "queries[]" for "queries[].id", "ids" for "ids[]". Empty for a
// field of the request itself.
std::string_view FindParent(std::string_view path) {
  if (path.ends_with("[]")) return path.substr(0, path.size() - 2);
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

const FlagName* FindFlag(std::string_view command, std::string_view path) {
  if (path.empty()) return nullptr;
  const auto found = std::ranges::find_if(kFlagNames, [&](const FlagName& name) {
    return name.field == path && (name.command.empty() || name.command == command);
  });
  if (found != kFlagNames.end()) return &*found;
  for (const std::string_view shared : kShared) {
    if (!path.starts_with(shared)) continue;
    const FlagName* const of_shared = FindFlag(command, path.substr(shared.size()));
    if (of_shared != nullptr) return of_shared;
  }
  return FindFlag(command, FindParent(path));
}

// The characters of field paths.
constexpr std::string_view kInPath = "abcdefghijklmnopqrstuvwxyz0123456789_.[]";

// The length of the message's start that names the field, as a whole or part by part: "queries[3]:
// filter, " for "queries[3].filter".
std::size_t NamedLength(std::string_view message, std::string_view field) {
  std::size_t begin = 0;
  while (begin < message.size()) {
    const std::size_t end = message.find_first_not_of(kInPath, begin);
    if (end == std::string_view::npos) break;
    const std::string_view part = message.substr(begin, end - begin);
    const std::string_view mark = message.substr(end, 2);
    const std::size_t at = part.empty() ? std::string_view::npos : field.find(part);
    if ((mark != ": " && mark != ", ") || at == std::string_view::npos) break;
    const std::size_t after = at + part.size();
    const bool whole =
        (at == 0 || field[at - 1] == '.') && (after == field.size() || field[after] == '.');
    if (!whole) break;
    begin = end + mark.size();
  }
  return begin;
}

// The refused number at the start of a text such as "0; ask for 1 to 10,000"; empty if it starts
// otherwise.
std::string_view RefusedNumber(std::string_view text) {
  const std::string_view value = text.substr(0, text.find("; "));
  if (value.size() == text.size()) return {};
  const bool is_number =
      value == "NaN" || value == "infinite" ||
      (!value.empty() && value.find_first_not_of("0123456789.,e+-") == std::string_view::npos);
  return is_number ? value : std::string_view();
}

// The index of the wrong value of a repeated flag: 3 for "queries[3].id" and "ids[3]". Nothing for
// index 0, because the first value is mostly the only one.
std::optional<std::uint32_t> ParseIndex(std::string_view field) {
  // Two flags give a query's positive examples, so only the query's index identifies the value.
  field = field.substr(0, field.find(".examples.positive"));
  const std::size_t open = field.rfind('[');
  if (open == std::string_view::npos) return std::nullopt;
  std::uint32_t index = 0;
  const std::string_view digits = field.substr(open + 1);
  std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (index == 0) return std::nullopt;
  return index;
}

// "2nd", "11th"
std::string Ordinal(std::uint32_t number) {
  const std::uint32_t last = number % 10;
  const bool teen = number % 100 / 10 == 1;
  const char* const ending = teen || last == 0 || last > 3 ? "th"
                             : last == 1                   ? "st"
                             : last == 2                   ? "nd"
                                                           : "rd";
  return fmt::format("{}{}", number, ending);
}

// Whether the flag is given once per query or id, so that the field's index identifies the flag.
bool IsRepeated(std::string_view flag) {
  constexpr std::array<std::string_view, 4> kRepeated{"--exclude", "--id", "--unlike", "--user"};
  return std::ranges::find(kRepeated, flag) != kRepeated.end();
}

// "-k", "4th --id", "--vector, row 3"
std::string NamedFlag(std::string_view flag, std::string_view field) {
  const std::optional<std::uint32_t> index = ParseIndex(field);
  if (index && IsRepeated(flag)) return fmt::format("{} {}", Ordinal(*index + 1), flag);
  if (index && flag == "--vector") return fmt::format("{}, row {}", flag, *index);
  return std::string(flag);
}

// `the answer needs 99,000,000 bytes and may have 67,108,864; ` and the command's own advice.
std::string WithSmallerAnswer(std::string_view message, std::string_view command) {
  const auto found = std::ranges::find(kSmallerAnswers, command, &SmallerAnswer::command);
  const std::size_t end = message.find("; ");
  if (found == kSmallerAnswers.end() || end == std::string_view::npos) return std::string(message);
  return fmt::format("{}; {}", message.substr(0, end), found->advice);
}

// Replaces the server's advice on a page token by the flag that prints one.
std::string WithPagedTokens(std::string message) {
  constexpr std::string_view kOfWire = "send an answer's next_page_token unchanged";
  constexpr std::string_view kOfFlags = "give the token that --paged printed, unchanged";
  const std::size_t at = message.find(kOfWire);
  if (at != std::string::npos) message.replace(at, kOfWire.size(), kOfFlags);
  return message;
}

}  // namespace

std::span<const FlagName> FlagNames() { return kFlagNames; }

std::string_view FlagOf(std::string_view command, std::string_view field) {
  const FlagName* const found = FindFlag(command, WithoutIndices(field));
  return found == nullptr ? std::string_view() : found->flag;
}

absl::Status InFlags(const absl::Status& error, std::string_view command,
                     std::string_view collection_given_as) {
  const std::string_view message(error.message().data(), error.message().size());
  const ErrorDetails details = ParseDetails(error);
  if (details.reason == base::InfoOf(base::ErrorReason::kReplyTooLarge).name) {
    return base::WithMessage(error, WithSmallerAnswer(message, command));
  }
  const std::string& field = details.field;
  std::string_view flag = field.empty() ? std::string_view() : FlagOf(command, field);
  if (flag.empty()) return error;
  if (flag == kCollectionFlag) flag = collection_given_as;
  const std::size_t named = NamedLength(message, field);
  if (named == 0) return error;
  // The mark is ": ", or ", " before a column.
  const std::string_view mark = message.substr(named - 2, 2);
  std::string_view text = message.substr(named);
  std::string told = NamedFlag(flag, field);
  if (const std::string_view number = RefusedNumber(text); !number.empty()) {
    told.append(" ").append(number);
    text.remove_prefix(number.size() + 2);
  }
  told.append(mark).append(text);
  return base::WithMessage(error, WithPagedTokens(std::move(told)));
}

std::string NoteInFlags(const std::string& note, std::string_view command) {
  const std::string option = note.substr(0, note.find_first_not_of(kInPath));
  const std::string_view flag = FlagOf(command, option);
  return flag.empty() ? note : std::string(flag) + note.substr(option.size());
}

}  // namespace simile::cli
