#include "data/interactions_reader.h"

#include <optional>
#include <utility>
#include <variant>

#include <absl/time/time.h>
#include <fmt/format.h>

#include "base/message_text.h"
#include "data/id_rules.h"
#include "data/json_value.h"

namespace simile::data {
namespace {

bool IsRfc3339(const std::string& text) {
  // absl also reads "infinite-future" and surrounding space, which RFC 3339 does not have.
  constexpr std::size_t kLongest = 40;
  if (text.size() > kLongest || text.empty() || text.front() < '0' || text.front() > '9' ||
      text.back() == ' ') {
    return false;
  }
  absl::Time time;
  return absl::ParseTime(absl::RFC3339_full, text, &time, nullptr);
}

// Counts lines that name something unknown, and remembers the first.
class UnknownNames {
 public:
  void Add(std::uint64_t line, const std::string& id) {
    if (count_++ == 0) first_ = fmt::format("line {}, {}", line, base::Quoted(id));
  }
  std::uint64_t count() const { return count_; }
  void AppendNote(std::string_view display_name, std::uint64_t line_count, std::string_view noun,
                  std::vector<std::string>& notes) const {
    if (count_ == 0) return;
    notes.push_back(fmt::format("{}: {} of {} {} unknown {}s and {} left out (first: {})",
                                display_name, base::Grouped(count_),
                                base::Counted(line_count, "line"), count_ == 1 ? "names" : "name",
                                noun, count_ == 1 ? "is" : "are", first_));
  }

 private:
  std::uint64_t count_ = 0;
  std::string first_;
};

}  // namespace

InteractionsReader::InteractionsReader(BufferedReader& in, const std::string& id_field,
                                       const Limits& limits)
    : limits_(limits), lines_(in, limits) {
  if (!id_field.empty()) item_fields_.push_back(id_field);
  for (const char* const field : {"media_id", "item_id", "id"}) {
    if (field != id_field) item_fields_.emplace_back(field);
  }
}

std::string InteractionsReader::Needed() const {
  return fmt::format("every line needs \"user_id\" and one of \"{}\"",
                     fmt::join(item_fields_, "\", \""));
}

absl::StatusOr<std::string> InteractionsReader::ReadId(const PayloadObject& object,
                                                       std::string_view field) const {
  const PayloadValue* const value = FindMember(object, field);
  if (value == nullptr) {
    return lines_.ErrorAtLine(fmt::format("has no {}; {}", base::Quoted(field), Needed()));
  }
  absl::StatusOr<std::string> id = IdFrom(*value, limits_);
  if (id.ok()) return id;
  return lines_.ErrorAtLine(
      fmt::format("{} {}", base::Quoted(field), std::string(id.status().message())));
}

absl::Status InteractionsReader::CheckWeight(const PayloadObject& object) const {
  const PayloadValue* const weight = FindMember(object, "weight");
  if (weight == nullptr || std::holds_alternative<std::int64_t>(weight->value) ||
      std::holds_alternative<double>(weight->value)) {
    return absl::OkStatus();
  }
  return lines_.ErrorAtLine(fmt::format("\"weight\" is {}; a number is needed", Describe(*weight)));
}

absl::Status InteractionsReader::CheckTime(const PayloadObject& object) const {
  constexpr std::string_view kNeeded =
      "RFC 3339 (\"2024-05-01T12:00:00Z\") or whole seconds since 1970 are needed";
  const PayloadValue* const time = FindMember(object, "time");
  if (time == nullptr || std::holds_alternative<std::int64_t>(time->value)) return absl::OkStatus();
  const auto* const text = std::get_if<std::string>(&time->value);
  if (text == nullptr) {
    return lines_.ErrorAtLine(fmt::format("\"time\" is {}; {}", Describe(*time), kNeeded));
  }
  if (IsRfc3339(*text)) return absl::OkStatus();
  return lines_.ErrorAtLine(fmt::format("\"time\" is {}; {}", base::Quoted(*text), kNeeded));
}

absl::StatusOr<bool> InteractionsReader::Next(Interaction& interaction) {
  PayloadObject object;
  absl::StatusOr<bool> found = lines_.Next(object);
  if (!found.ok() || !*found) return found;
  absl::StatusOr<std::string> user = ReadId(object, "user_id");
  if (!user.ok()) return user.status();
  const std::string* item_field = nullptr;
  for (const std::string& field : item_fields_) {
    if (item_field == nullptr && FindMember(object, field) != nullptr) item_field = &field;
  }
  if (item_field == nullptr) {
    return lines_.ErrorAtLine(fmt::format("names no item; {}", Needed()));
  }
  absl::StatusOr<std::string> item = ReadId(object, *item_field);
  if (!item.ok()) return item.status();
  if (absl::Status status = CheckWeight(object); !status.ok()) return status;
  if (absl::Status status = CheckTime(object); !status.ok()) return status;
  interaction = {.user_id = *std::move(user), .item_id = *std::move(item)};
  return true;
}

absl::StatusOr<Interactions> ReadInteractions(BufferedReader& in, const IdIndex& users,
                                              const IdIndex& items, const std::string& id_field,
                                              Keep keep, const Limits& limits) {
  InteractionsReader reader(in, id_field, limits);
  std::vector<std::pair<Row, Row>> pairs;
  UnknownNames unknown_users;
  UnknownNames unknown_items;
  Interaction interaction;
  while (true) {
    const absl::StatusOr<bool> found = reader.Next(interaction);
    if (!found.ok()) return found.status();
    if (!*found) break;
    const std::optional<Row> user = users.Find(interaction.user_id);
    const std::optional<Row> item = items.Find(interaction.item_id);
    if (!user) {
      unknown_users.Add(reader.line(), interaction.user_id);
    } else if (!item) {
      unknown_items.Add(reader.line(), interaction.item_id);
    } else if (keep == Keep::kRows) {
      pairs.emplace_back(*user, *item);
    }
  }
  Interactions interactions;
  interactions.seen = SeenSets::FromPairs(users.size(), std::move(pairs));
  const std::uint64_t unknown = unknown_users.count() + unknown_items.count();
  interactions.all_unknown = unknown > 0 && unknown == reader.line();
  unknown_users.AppendNote(in.display_name(), reader.line(), "user", interactions.notes);
  unknown_items.AppendNote(in.display_name(), reader.line(), "item", interactions.notes);
  return interactions;
}

}  // namespace simile::data
