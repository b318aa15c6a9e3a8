#include "data/payload/id_rules.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include <absl/hash/hash.h>
#include <absl/strings/ascii.h>
#include <absl/strings/string_view.h>
#include <fmt/format.h>

#include "base/message_text.h"
#include "base/utf8.h"
#include "data/formats/json_reader.h"
#include "data/payload/field_type.h"

namespace simile::data {
namespace {

constexpr auto kUsual = std::to_array<std::string_view>({"id", "media_id", "item_id"});
constexpr std::size_t kCandidatesMax = 4;

bool HasValue(const PayloadObject& line, std::string_view field) {
  const PayloadValue* const value = FindMember(line, field);
  return value != nullptr && !std::holds_alternative<std::monostate>(value->value);
}

// A hash of a string or an integer; 0 for any other value.
std::uint64_t HashOfId(const PayloadValue* value) {
  if (value == nullptr) return 0;
  if (const auto* const text = std::get_if<std::string>(&value->value)) {
    return text->empty() ? 0 : absl::HashOf(absl::string_view(*text));
  }
  const auto whole = ToWhole(*value);
  return whole ? absl::HashOf(*whole) : 0;
}

}  // namespace

absl::Status CheckId(std::string_view id, const Limits& limits) {
  if (id.empty()) return absl::InvalidArgumentError("is empty; an id has at least 1 byte");
  if (id.size() > limits.id_bytes_max) {
    return absl::InvalidArgumentError(fmt::format("is {} long; an id has at most {}",
                                                  base::Counted(id.size(), "byte"),
                                                  base::Grouped(limits.id_bytes_max)));
  }
  for (std::size_t at = 0; at < id.size();) {
    const std::size_t length = base::Utf8SequenceLength(id.substr(at));
    if (base::IsControl(id.substr(at, length))) {
      return absl::InvalidArgumentError(fmt::format(
          "is {}, which holds a control character; an id is printable text", base::Quoted(id)));
    }
    at += length;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> IdFrom(const PayloadValue& value, const Limits& limits) {
  if (const auto whole = ToWhole(value)) return fmt::to_string(*whole);
  if (const auto* const number = std::get_if<double>(&value.value)) {
    return absl::InvalidArgumentError(
        fmt::format("is {}; an id is a string or an integer, as astype(int) makes of the column "
                    "where the ids are whole numbers",
                    *number));
  }
  const auto* const text = std::get_if<std::string>(&value.value);
  if (text == nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("is {}; an id is a string or an integer", Describe(value)));
  }
  if (absl::Status status = CheckId(*text, limits); !status.ok()) return status;
  return *text;
}

bool IsNamedAsId(std::string_view name) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"id", "asin", "uuid", "guid", "isbn", "isbn13", "ean", "gtin", "sku", "doi", "key", "slug"});
  const std::string lower = absl::AsciiStrToLower(absl::string_view(name.data(), name.size()));
  if (std::ranges::find(kWords, std::string_view(lower)) != kWords.end()) return true;
  if (!lower.ends_with("id") || name.size() < 3) return false;
  const auto before = static_cast<unsigned char>(name[name.size() - 3]);
  const bool is_word = !absl::ascii_isalnum(before);
  const bool is_camel =
      name.ends_with("Id") || (name.ends_with("ID") && !absl::ascii_isupper(before));
  return is_word || is_camel;
}

std::string FindIdField(const PayloadObject& first_line) {
  for (const std::string_view field : kUsual) {
    if (HasValue(first_line, field)) return std::string(field);
  }
  return {};
}

void MissedIdField::Add(const PayloadObject& line) {
  if (lines_++ == 0) return FindCandidates(line);
  for (Late& late : late_) {
    if (HasValue(line, late.name)) ++late.lines;
  }
  std::erase_if(candidates_, [&line](Candidate& candidate) {
    const std::uint64_t hash = HashOfId(FindMember(line, candidate.name));
    candidate.hashes.push_back(hash);
    return hash == 0;
  });
}

void MissedIdField::FindCandidates(const PayloadObject& first_line) {
  for (const std::string_view field : kUsual) late_.push_back({field, 0});
  for (const auto& [name, value] : first_line) {
    const std::uint64_t hash = HashOfId(&value);
    if (hash == 0 || !IsNamedAsId(name) || candidates_.size() == kCandidatesMax) continue;
    candidates_.push_back({name, {hash}});
  }
}

std::vector<std::string> MissedIdField::Notes(std::string_view display_name) && {
  std::vector<std::string> notes;
  for (const Late& late : late_) {
    if (late.lines == 0) continue;
    notes.push_back(fmt::format(
        "{}: ids are row numbers, because line 1 has no {}; {} of {} have one: give every line one",
        display_name, base::Quoted(late.name), base::Grouped(late.lines),
        base::Counted(lines_, "line")));
  }
  for (Candidate& candidate : candidates_) {
    std::ranges::sort(candidate.hashes);
    const bool is_distinct = std::ranges::adjacent_find(candidate.hashes) == candidate.hashes.end();
    if (!is_distinct || lines_ < 2) continue;
    const std::string field = base::Quoted(candidate.name);
    notes.push_back(
        fmt::format("{}: ids are row numbers; {} is distinct in every row, and "
                    "\"id_field\": {} in collection.json makes it the id",
                    display_name, field, field));
    break;
  }
  return notes;
}

}  // namespace simile::data
