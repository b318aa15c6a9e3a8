#include "data/load/interactions_reader.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <variant>

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include "base/message_text.h"
#include "data/faults.h"
#include "data/formats/json_reader.h"
#include "data/payload/id_rules.h"

namespace simile::data {
namespace {

// Counts lines of a kind, and remembers the first.
class CountedLines {
 public:
  //   what  `1 of 5 lines WHAT`, for one line and for more
  CountedLines(std::string_view one, std::string_view many) : one_(one), many_(many) {}

  void Add(std::uint64_t line, const std::string& id) {
    if (count_++ > 0) return;
    first_ = fmt::format("line {}", line);
    if (!id.empty()) first_ += fmt::format(", {}", base::Quoted(id));
  }
  std::uint64_t count() const { return count_; }
  //   more  what else the note says; may be empty
  void AppendNote(std::string_view display_name, std::uint64_t line_count,
                  std::vector<std::string>& notes, std::string_view more = "") const {
    if (count_ == 0) return;
    notes.push_back(fmt::format("{}: {} of {} {} (first: {}){}{}", display_name,
                                base::Grouped(count_), base::Counted(line_count, "line"),
                                count_ == 1 ? one_ : many_, first_, more.empty() ? "" : "; ",
                                more));
  }

 private:
  const std::string_view one_;
  const std::string_view many_;
  std::uint64_t count_ = 0;
  std::string first_;
};

constexpr std::string_view kUserField = "user_id";

// `line 1 has "user", "ts"`.
std::string MembersText(const PayloadObject& object, std::uint64_t line) {
  constexpr std::size_t kNamedMax = 8;
  std::vector<std::string> names;
  for (const auto& [name, value] : object) {
    if (names.size() == kNamedMax) break;
    names.push_back(base::Quoted(name));
  }
  return fmt::format("line {} has {}{}", line, fmt::join(names, ", "),
                     object.size() > kNamedMax ? ", ..." : "");
}

// The member of a line; null also where its value is.
const PayloadValue* FindValue(const PayloadObject& object, std::string_view field) {
  const PayloadValue* const value = FindMember(object, field);
  const bool is_null = value != nullptr && std::holds_alternative<std::monostate>(value->value);
  return is_null ? nullptr : value;
}

}  // namespace

InteractionsReader::InteractionsReader(BufferedReader& in, const std::string& id_field,
                                       const Limits& limits)
    : in_(in), limits_(limits), lines_(in, limits) {
  if (!id_field.empty()) item_fields_.push_back(id_field);
  for (const char* const field : {"media_id", "item_id", "id"}) {
    if (field != id_field) item_fields_.emplace_back(field);
  }
}

std::string InteractionsReader::Needed() const {
  return fmt::format("every line needs one of \"{}\"", fmt::join(item_fields_, "\", \""));
}

absl::StatusOr<std::string> InteractionsReader::ReadId(const PayloadValue& value,
                                                       std::string_view field) const {
  absl::StatusOr<std::string> id = IdFrom(value, limits_);
  if (id.ok()) return id;
  return lines_.ErrorAtLine(
      fmt::format("{} {}", base::Quoted(field), std::string(id.status().message())));
}

absl::StatusOr<bool> InteractionsReader::Next(Interaction& interaction) {
  PayloadObject object;
  absl::StatusOr<bool> found = lines_.Next(object);
  if (!found.ok() || !*found) return found;
  absl::StatusOr<std::string> user = std::string();
  if (first_members_.empty()) first_members_ = MembersText(object, lines_.line());
  has_users_ = has_users_ || FindMember(object, kUserField) != nullptr;
  const PayloadValue* const user_value = FindValue(object, kUserField);
  if (user_value != nullptr && *user_value != PayloadValue{std::string()}) {
    user = ReadId(*user_value, kUserField);
  }
  if (!user.ok()) return user.status();
  const auto item_field = std::ranges::find_if(item_fields_, [&object](const std::string& field) {
    return FindValue(object, field) != nullptr;
  });
  if (item_field == item_fields_.end()) {
    return lines_.ErrorAtLine(fmt::format("names no item; {}", Needed()));
  }
  absl::StatusOr<std::string> item = ReadId(*FindValue(object, *item_field), *item_field);
  if (!item.ok()) return item.status();
  interaction = {.user_id = *std::move(user), .item_id = *std::move(item)};
  return true;
}

std::string InteractionsReader::NoUsersText() const {
  if (has_users_ || first_members_.empty()) return {};
  return fmt::format("no line has {}; {}", base::Quoted(kUserField), first_members_);
}

absl::Status InteractionsReader::ReadAll(const std::function<void(const Interaction&)>& each) {
  FaultList faults(in_.display_name());
  Interaction interaction;
  while (true) {
    const absl::StatusOr<bool> found = Next(interaction);
    if (found.ok()) {
      if (!*found) break;
      if (faults.empty()) each(interaction);
      continue;
    }
    if (!faults.Add(found.status())) return found.status();
    if (!lines_.can_go_on()) break;
  }
  return lines_.ErrorOfFile(faults.ToStatus());
}

bool LooksLikeInteraction(const PayloadObject& line) {
  constexpr auto kUsers = std::to_array<std::string_view>(
      {"user_id", "userid", "user", "uid", "visitor_id", "visitorid", "customer_id", "customerid"});
  constexpr auto kItems = std::to_array<std::string_view>({"item", "media", "product"});
  bool has_user = false;
  bool has_item = false;
  for (const auto& [name, value] : line) {
    const bool is_id = std::holds_alternative<std::string>(value.value) ||
                       std::holds_alternative<std::int64_t>(value.value);
    const std::string lower = absl::AsciiStrToLower(name);
    if (!is_id || lower == "id") continue;
    if (std::ranges::find(kUsers, std::string_view(lower)) != kUsers.end()) {
      has_user = true;
    } else if (IsNamedAsId(name) ||
               std::ranges::find(kItems, std::string_view(lower)) != kItems.end()) {
      has_item = true;
    }
  }
  return has_user && has_item;
}

namespace {

// Collects what the lines of a file say.
class InteractionCounts {
 public:
  InteractionCounts(const IdIndex& users, const IdIndex& items, Keep keep)
      : users_(users), items_(items), keep_(keep), counts_(items.size(), 0) {}

  void Add(const Interaction& interaction, std::uint64_t line) {
    const std::optional<Row> item = items_.Find(interaction.item_id);
    if (!item) return unknown_items_.Add(line, interaction.item_id);
    const std::optional<Row> user = users_.Find(interaction.user_id);
    if (user) {
      ++used_;
      if (keep_ == Keep::kRows) pairs_.emplace_back(*user, *item);
    } else if (interaction.user_id.empty()) {
      nobodys_.Add(line, {});
      ++counts_[*item];
    } else {
      visitors_.Add(line, interaction.user_id);
      if (keep_ == Keep::kRows) {
        visits_.emplace_back(visitor_ids_.FindOrAdd(interaction.user_id), *item);
      }
    }
  }

  Interactions Build(const InteractionsReader& reader, std::string_view display_name) && {
    const JsonlReader& lines = reader.lines();
    Interactions built;
    built.seen = SeenSets::FromPairs(users_.size(), std::move(pairs_));
    built.visitor_ids = std::move(visitor_ids_).Build();
    built.visitor_seen = SeenSets::FromPairs(built.visitor_ids.size(), std::move(visits_));
    built.seen.AddCounts(counts_);
    built.visitor_seen.AddCounts(counts_);
    built.most_seen = SeenSets::ByCount(counts_);
    if (lines.count() == 0) built.notes.push_back(fmt::format("{}: is empty", display_name));
    const bool has_users = users_.size() > 0;
    if (!has_users) used_ = visitors_.count() + nobodys_.count();
    built.all_unknown = lines.count() > 0 && used_ == 0;
    const std::string no_users = reader.NoUsersText();
    if (has_users || (!no_users.empty() && nobodys_.count() > 0)) {
      visitors_.AppendNote(display_name, lines.count(), built.notes);
      nobodys_.AppendNote(display_name, lines.count(), built.notes, no_users);
    } else if (lines.count() > 0) {
      built.notes.push_back(fmt::format(
          "{}: counts for popularity and for exclude_seen, since the collection has no vectors of "
          "users (user_ids.json)",
          display_name));
    }
    unknown_items_.AppendNote(display_name, lines.count(), built.notes);
    lines.NoteBlankLines(built.notes);
    return built;
  }

 private:
  const IdIndex& users_;
  const IdIndex& items_;
  const Keep keep_;
  std::vector<std::pair<Row, Row>> pairs_;  // of a user and an item
  IdIndex::Builder visitor_ids_{0};
  std::vector<std::pair<Row, Row>> visits_;  // of a visitor and an item
  std::vector<std::uint32_t> counts_;        // of nobody's lines, by item
  std::uint64_t used_ = 0;
  CountedLines visitors_{
      "names a user without a vector and counts for popularity and for exclude_seen",
      "name users without a vector and count for popularity and for exclude_seen"};
  CountedLines nobodys_{"names no user and counts for popularity alone",
                        "name no user and count for popularity alone"};
  CountedLines unknown_items_{"names an unknown item and is left out",
                              "name unknown items and are left out"};
};

}  // namespace

absl::StatusOr<Interactions> ReadInteractions(BufferedReader& in, const IdIndex& users,
                                              const IdIndex& items, const std::string& id_field,
                                              Keep keep, const Limits& limits) {
  InteractionsReader reader(in, id_field, limits);
  InteractionCounts counts(users, items, keep);
  const absl::Status status = reader.ReadAll(
      [&](const Interaction& interaction) { counts.Add(interaction, reader.lines().line()); });
  if (!status.ok()) return status;
  return std::move(counts).Build(reader, in.display_name());
}

}  // namespace simile::data
