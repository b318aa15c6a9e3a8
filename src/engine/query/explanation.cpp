#include "engine/query/explanation.h"

#include <algorithm>
#include <map>
#include <set>
#include <variant>

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include "base/message_text.h"
#include "data/payload/payload_encoding.h"
#include "engine/query/existing_items.h"
#include "filter/expression.h"
#include "filter/filters.h"

namespace simile::engine {
namespace {

// Estimated times: comparing a listed id with the ids to explain; walking over the payload of a
// row; checking a part of a filter for one item.
constexpr std::uint64_t kComparedIdNs = 30;
constexpr std::uint64_t kPayloadNs = 2'000;
constexpr std::uint64_t kClauseNs = 500;

// The most elements of a list that a sentence names.
constexpr std::size_t kElementsNamedMax = 5;

using Ids = std::span<const std::string_view>;

// Finds which of the ids are in lists of ids. Borrows the ids.
class ListedIds {
 public:
  explicit ListedIds(Ids ids) {
    for (const std::string_view id : ids) listed_.emplace(id, false);
  }

  template <class List>
  absl::Status Read(const List& list, base::LongWork& work) {
    for (const std::string_view id : list) {
      const auto found = listed_.find(id);
      if (found != listed_.end()) found->second = true;
    }
    return work.Did(list.size() * kComparedIdNs);
  }
  bool Has(std::string_view id) const { return listed_.find(id)->second; }

 private:
  absl::flat_hash_map<std::string_view, bool> listed_;
};

// The items that a query names, and therefore never returns.
std::vector<std::string_view> NamedItems(const QueryRequest& request) {
  std::vector<std::string_view> ids;
  const auto add = [&](const auto& target) {
    if (const auto* const item = std::get_if<ByItem>(&target)) ids.push_back(item->id);
  };
  add(request.target);
  if (const auto* const blend = std::get_if<ByBlend>(&request.target)) add(blend->target);
  if (const auto* const examples = std::get_if<ByExamples>(&request.target)) {
    for (const Example& example : examples->positive) add(example.target);
    for (const Example& example : examples->negative) add(example.target);
  }
  return ids;
}

// The user whose interactions are left out; null for none.
const ByUser* UserOfExclusions(const QueryRequest& request) {
  const auto* user = std::get_if<ByUser>(&request.target);
  if (const auto* const blend = std::get_if<ByBlend>(&request.target)) user = &blend->user;
  return user != nullptr && user->exclude_seen ? user : nullptr;
}

void AddFields(const filter::Expression& expression, const data::PayloadTable& payload,
               std::set<std::uint32_t>& fields) {
  if (const auto number = payload.FieldNumber(expression.field)) fields.insert(*number);
  for (const filter::Expression& child : expression.children) AddFields(child, payload, fields);
}

using Values = std::map<std::uint32_t, std::span<const std::uint8_t>>;  // by number of the field

// The values of these fields in one row. Cost: one walk over its payload.
Values ReadValues(const data::PayloadTable& payload, Row row,
                  const std::set<std::uint32_t>& fields) {
  Values values;
  if (fields.empty()) return values;
  payload.VisitEncodedFields(row, [&](std::uint32_t number, std::span<const std::uint8_t> value) {
    if (fields.contains(number)) values.emplace(number, value);
  });
  return values;
}

// Checks the items against each part of the filter. Holds one mask at a time.
absl::Status CheckClauses(const engine::Snapshot& snapshot, std::string_view filter,
                          const filter::PayloadView& fields, base::LongWork& work,
                          std::vector<CheckedItem>& items) {
  if (filter.empty()) return absl::OkStatus();
  const data::PayloadTable& payload = snapshot.dataset->payload;
  const auto prepared = snapshot.filters->Prepare(filter, fields, work);
  if (!prepared.ok()) return prepared.status();
  const filter::Expression& whole = prepared->expression;
  const std::span<const filter::Expression> parts = whole.kind == filter::Expression::Kind::kAnd
                                                        ? std::span(whole.children)
                                                        : std::span(&whole, 1);
  std::set<std::uint32_t> all_fields;
  AddFields(whole, payload, all_fields);
  std::vector<Values> values(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].row) continue;
    values[i] = ReadValues(payload, *items[i].row, all_fields);
    if (absl::Status status = work.Did(kPayloadNs); !status.ok()) return status;
  }
  for (const filter::Expression& part : parts) {
    const auto rows = snapshot.filters->RowsOfPart(part, work);
    if (!rows.ok()) return rows.status();
    std::set<std::uint32_t> part_fields;
    AddFields(part, payload, part_fields);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!items[i].row) continue;
      ClauseCheck& check = items[i].clauses.emplace_back();
      check.text = filter::ToText(part);
      check.passes = rows->Allows(*items[i].row);
      for (const std::uint32_t number : part_fields) {
        const auto found = values[i].find(number);
        if (found == values[i].end()) continue;
        check.values.emplace_back(payload.fields()[number].name, found->second);
      }
      if (absl::Status status = work.Did(kClauseNs); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

// A payload value in a sentence.
std::string ValueText(std::span<const std::uint8_t> encoded) {
  struct Text {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const { return fmt::format("{}", value); }
    std::string operator()(std::string_view value) const { return base::Quoted(value); }
    std::string operator()(data::EncodedList list) const {
      std::vector<std::string> texts;
      while (!list.elements.at_end()) {
        const auto element = list.elements.ReadElement();
        if (texts.size() == kElementsNamedMax) {
          texts.emplace_back("...");
          break;
        }
        texts.push_back(ValueText(element));
      }
      return fmt::format("[{}]", fmt::join(texts, ", "));
    }
    std::string operator()(const data::EncodedObject&) const { return "an object"; }
  };
  return std::visit(Text{}, data::ReadValue(encoded));
}

// `year >= 1990 (year is 1987)`
std::string FailedText(const ClauseCheck& clause) {
  std::vector<std::string> values;
  for (const auto& [name, value] : clause.values) {
    values.push_back(fmt::format("{} is {}", filter::FieldText(name), ValueText(value)));
  }
  return values.empty() ? clause.text
                        : fmt::format("{} ({})", clause.text, fmt::join(values, ", "));
}

std::string FailedText(std::span<const ClauseCheck> clauses) {
  std::vector<std::string> failed;
  for (const ClauseCheck& clause : clauses) {
    if (!clause.passes) failed.push_back(FailedText(clause));
  }
  return fmt::format("it does not pass {}", fmt::join(failed, " and "));
}

std::string Score(float score) { return fmt::format("{:.6g}", score); }

// `1 row ranks before`, `12 rows rank before`
std::string RankBefore(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} rank{} before", base::Counted(count, noun), count == 1 ? "s" : "");
}

// By how much the row's score is too low.
std::string LackText(const engine::RowPlace& place, std::optional<float> score_needed) {
  if (!score_needed) return {};
  if (place.score == *score_needed) {
    return "; the row at that rank has the same score and a lower row number";
  }
  const double lack = static_cast<double>(*score_needed) - static_cast<double>(place.score);
  return fmt::format("; the row at that rank scores {:.3g} more", lack);
}

std::string RankText(const engine::RowPlace& place, const AnswerCriteria& criteria,
                     std::optional<float> score_needed) {
  const std::string last =
      criteria.diversity ? fmt::format("diversity chooses among the rows up to rank {}",
                                       base::Grouped(criteria.diversity->candidates))
                         : fmt::format("the answer ends at rank {}", base::Grouped(criteria.reach));
  return fmt::format("{} it, and {}{}", RankBefore(place.rows_before, "row"), last,
                     LackText(place, score_needed));
}

std::string ItemText(const engine::Snapshot& snapshot, Row row) {
  data::IdIndex::Digits digits;
  return base::Quoted(snapshot.dataset->ids.Id(row, digits));
}

std::string StepText(const engine::Snapshot& snapshot, const engine::DiversityStep& step) {
  std::string text = fmt::format("in step {} its marginal relevance is {:.6g}", step.step,
                                 step.marginal_relevance);
  if (!step.chosen) {
    text += fmt::format(", that of the chosen item {:.6g}", step.chosen_marginal_relevance);
  }
  if (!step.nearest) return text;
  return text + fmt::format("; the most similar item chosen earlier is {} (similarity {})",
                            ItemText(snapshot, *step.nearest), Score(step.similarity));
}

// The group of the row that comes nearest to the answer.
const engine::RowPlace::GroupPlace& BestGroup(const engine::RowPlace& place) {
  return *std::ranges::min_element(place.groups, {}, &engine::RowPlace::GroupPlace::groups_before);
}

// Whether the item is among the rows that its group shows.
bool IsShown(const engine::RowPlace::GroupPlace& group, const AnswerCriteria& criteria) {
  return group.rows_before < criteria.grouping->group_size;
}

bool IsReached(const engine::RowPlace::GroupPlace& group, const AnswerCriteria& criteria) {
  return group.groups_before < criteria.reach;
}

// The group by which an item is in the answer, or would be without the offset; null for none.
const engine::RowPlace::GroupPlace* GroupOfAnswer(const engine::RowPlace& place,
                                                  const AnswerCriteria& criteria, bool skipped) {
  const auto found = std::ranges::find_if(place.groups, [&](const auto& group) {
    return IsReached(group, criteria) && IsShown(group, criteria) &&
           (group.groups_before < criteria.offset) == skipped;
  });
  return found == place.groups.end() ? nullptr : &*found;
}

std::string GroupText(const engine::RowPlace::GroupPlace& group, const AnswerCriteria& criteria) {
  return fmt::format("group {}", base::Quoted(criteria.grouping->field.Text(group.number)));
}

void AddGroupReasons(const engine::RowPlace& place, const AnswerCriteria& criteria,
                     std::vector<Reason>& reasons) {
  if (place.groups.empty()) return reasons.push_back(Reason::kNoGroup);
  if (GroupOfAnswer(place, criteria, false) != nullptr) return;
  if (GroupOfAnswer(place, criteria, true) != nullptr) return reasons.push_back(Reason::kOffset);
  const bool reached = std::ranges::any_of(
      place.groups, [&](const auto& group) { return IsReached(group, criteria); });
  reasons.push_back(reached ? Reason::kRankInGroup : Reason::kGroupRank);
}

// One reason as a part of a sentence.
//   place  not null for a reason that a place gives
std::string ReasonText(Reason reason, const engine::Snapshot& snapshot, const CheckedItem& item,
                       const engine::RowPlace* place, const AnswerCriteria& criteria,
                       std::optional<float> score_needed) {
  switch (reason) {
    case Reason::kNotFound:
      return item.not_found;
    case Reason::kNotSearchable:
      return "its vector is all zeros, which cosine cannot compare";
    case Reason::kFilter:
      return FailedText(item.clauses);
    case Reason::kNotAllowed:
      return "it is not among the allowed ids";
    case Reason::kExcluded:
      return "it is among the excluded ids";
    case Reason::kSeen:
      return "the user has interacted with it";
    case Reason::kInQuery:
      return "the query names it";
    case Reason::kThreshold:
      return fmt::format("its score {} is below the threshold {}", Score(place->score),
                         Score(criteria.requested_threshold));
    case Reason::kRank:
      return RankText(*place, criteria, score_needed);
    case Reason::kOffset:
      return fmt::format("the first {} are skipped, and it is among them",
                         base::Counted(criteria.offset, criteria.grouping ? "group" : "hit"));
    case Reason::kDiversity:
      return fmt::format("diversity does not choose it: {}", StepText(snapshot, *place->diversity));
    case Reason::kNoGroup:
      return fmt::format("it has no {} and is in no group",
                         filter::FieldText(criteria.group_field));
    case Reason::kGroupRank:
      return fmt::format("{} its {}, and the answer ends at group {}",
                         RankBefore(BestGroup(*place).groups_before, "group"),
                         GroupText(BestGroup(*place), criteria), base::Grouped(criteria.reach));
    case Reason::kRankInGroup:
      return fmt::format("{} it in its {}; the answer has {} of each group",
                         RankBefore(BestGroup(*place).rows_before, "row"),
                         GroupText(BestGroup(*place), criteria),
                         base::Counted(criteria.grouping->group_size, "row"));
  }
  return {};
}

// The explanation of an item that is in the answer.
std::string ReturnedText(const engine::Snapshot& snapshot, const engine::RowPlace& place,
                         const AnswerCriteria& criteria) {
  if (criteria.grouping) {
    const auto* const group = GroupOfAnswer(place, criteria, false);
    return fmt::format("returned in {}, which ranks {}, as its row {}", GroupText(*group, criteria),
                       base::Grouped(group->groups_before + 1),
                       base::Grouped(group->rows_before + 1));
  }
  if (place.diversity) {
    return fmt::format("returned at rank {} by diversity: {}", base::Grouped(place.diversity->step),
                       StepText(snapshot, *place.diversity));
  }
  const std::string rank = fmt::format("returned at rank {}", base::Grouped(place.rows_before + 1));
  return criteria.is_cold_start ? rank : fmt::format("{} with score {}", rank, Score(place.score));
}

}  // namespace

absl::StatusOr<std::vector<CheckedItem>> CheckItems(const engine::Snapshot& snapshot,
                                                    const QueryRequest& request,
                                                    const CallOptions& options, Ids ids,
                                                    base::LongWork& work) {
  const auto items =
      ExistingItems::Create(snapshot, options.required_filters, "options.required_filter", work);
  if (!items.ok()) return items.status();
  ListedIds allowed(ids);
  ListedIds excluded(ids);
  ListedIds named(ids);
  absl::Status status = excluded.Read(options.exclude_ids, work);
  if (status.ok()) status = excluded.Read(request.exclude_ids, work);
  if (status.ok()) status = named.Read(NamedItems(request), work);
  if (status.ok() && options.allow_ids) status = allowed.Read(*options.allow_ids, work);
  if (!status.ok()) return status;
  const ByUser* const user = UserOfExclusions(request);
  const std::span<const Row> seen =
      user == nullptr ? std::span<const Row>() : items->SeenBy(user->id);

  std::vector<CheckedItem> checked;
  for (const std::string_view id : ids) {
    CheckedItem& item = checked.emplace_back();
    item.id = id;
    item.row = items->Find(id);
    if (item.row) continue;
    auto text = items->ItemNotFoundText(id, checked.size() == 1, work);
    if (!text.ok()) return text.status();
    item.not_found = *std::move(text);
  }
  status = CheckClauses(snapshot, request.filter, items->fields(), work, checked);
  if (!status.ok()) return status;
  for (CheckedItem& item : checked) {
    const auto add_if = [&](bool applies, Reason reason) {
      if (applies) item.reasons.push_back(reason);
    };
    if (!item.row) {
      item.reasons.push_back(Reason::kNotFound);
      continue;
    }
    add_if(snapshot.searchable != nullptr && !snapshot.searchable->Allows(*item.row),
           Reason::kNotSearchable);
    add_if(!std::ranges::all_of(item.clauses, &ClauseCheck::passes), Reason::kFilter);
    add_if(options.allow_ids && !allowed.Has(item.id), Reason::kNotAllowed);
    add_if(excluded.Has(item.id), Reason::kExcluded);
    add_if(std::ranges::binary_search(seen, *item.row), Reason::kSeen);
    add_if(named.Has(item.id), Reason::kInQuery);
  }
  return checked;
}

std::vector<Row> ComparableRows(std::span<const CheckedItem> items) {
  std::vector<Row> rows;
  for (const CheckedItem& item : items) {
    const bool searchable =
        std::ranges::find(item.reasons, Reason::kNotSearchable) == item.reasons.end();
    if (item.row && searchable) rows.push_back(*item.row);
  }
  std::ranges::sort(rows);
  const auto rest = std::ranges::unique(rows);
  rows.erase(rest.begin(), rest.end());
  return rows;
}

AnswerCriteria::AnswerCriteria(const engine::ResolvedQuery& query, const QueryRequest& request)
    : reach(query.k),
      reaches_all(query.k < std::uint64_t{request.offset} + request.k),
      offset(request.offset),
      requested_threshold(request.score_threshold),
      score_threshold(query.score_threshold),
      is_cold_start(query.order.has_value()),
      diversity(query.diversity),
      grouping(query.grouping),
      group_field(request.group_by ? request.group_by->field : std::string_view()) {}

void AddPlaceReasons(const engine::RowPlace& place, const AnswerCriteria& criteria,
                     std::vector<Reason>& reasons) {
  if (!criteria.is_cold_start && place.score < criteria.score_threshold) {
    reasons.push_back(Reason::kThreshold);
  }
  if (criteria.grouping) return AddGroupReasons(place, criteria, reasons);
  if (place.rows_before >= (criteria.diversity ? criteria.diversity->candidates : criteria.reach)) {
    return reasons.push_back(Reason::kRank);
  }
  if (!criteria.diversity) {
    if (place.rows_before < criteria.offset) reasons.push_back(Reason::kOffset);
    return;
  }
  // Diversity says nothing of a row that may not be returned.
  if (!place.diversity) return;
  if (!place.diversity->chosen) return reasons.push_back(Reason::kDiversity);
  if (place.diversity->step <= criteria.offset) reasons.push_back(Reason::kOffset);
}

std::string ExplanationText(const engine::Snapshot& snapshot, const CheckedItem& item,
                            const engine::RowPlace* place, const AnswerCriteria& criteria,
                            std::optional<float> score_needed) {
  if (item.reasons.empty()) return ReturnedText(snapshot, *place, criteria);
  std::vector<std::string> texts;
  for (const Reason reason : item.reasons) {
    texts.push_back(ReasonText(reason, snapshot, item, place, criteria, score_needed));
  }
  return fmt::format("not returned: {}", fmt::join(texts, "; "));
}

}  // namespace simile::engine
