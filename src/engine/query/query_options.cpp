#include "engine/query/query_options.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "filter/expression.h"
#include "filter/suggestions.h"

namespace simile::engine {
namespace {

using filter::Field;
using filter::FieldType;

constexpr std::string_view kFieldOfColdStart = "cold_start.field";
constexpr std::string_view kYear = "year";

bool HasOrder(const Field& field) {
  return field.type == FieldType::kInteger || field.type == FieldType::kNumber ||
         field.type == FieldType::kTime;
}

// "; fields with an order: year, rating", or "; no field of it has an order".
std::string FieldsWithOrder(const filter::PayloadView& payload) {
  std::vector<std::string> names;
  for (const Field& field : payload.fields()) {
    if (HasOrder(field)) names.push_back(filter::FieldText(field.name));
  }
  if (names.empty()) return "; no field of it has an order";
  return fmt::format("; fields with an order: {}", fmt::join(names, ", "));
}

// The field that orders rows by age when the request names none; null when no field does.
const Field* NewestField(const filter::PayloadView& payload) {
  const Field* only_time = nullptr;
  for (const Field& field : payload.fields()) {
    if (field.type != FieldType::kTime || field.is_nested) continue;
    if (only_time != nullptr) return nullptr;
    only_time = &field;
  }
  if (only_time != nullptr) return only_time;
  const Field* const year = payload.Find(kYear);
  const bool has_years =
      year != nullptr && (year->type == FieldType::kInteger || year->type == FieldType::kNumber);
  return has_years ? year : nullptr;
}

// An error of `cold_start` or of one of its fields, which the message names. The message names no
// query, because all queries of a call share the options' cold start.
absl::Status Refuse(std::string_view field, base::ErrorReason reason, std::string_view what) {
  return base::Error(reason, fmt::format("{}: {}", field, what), fmt::format("options.{}", field));
}

absl::StatusOr<const Field*> ChooseField(const engine::Snapshot& snapshot,
                                         const ColdStart& cold_start,
                                         const filter::PayloadView& payload) {
  if (cold_start.field.empty()) {
    if (const Field* const field = NewestField(payload)) return field;
    return Refuse(kFieldOfColdStart, base::ErrorReason::kInvalidField,
                  fmt::format("{} does not tell by itself which rows are newest; name a field{}",
                              snapshot.collection, FieldsWithOrder(payload)));
  }
  const Field* const field = payload.Find(cold_start.field);
  if (field == nullptr) {
    return Refuse(kFieldOfColdStart, base::ErrorReason::kUnknownPayloadField,
                  filter::UnknownField(snapshot.collection, cold_start.field, payload));
  }
  if (HasOrder(*field)) return field;
  return Refuse(
      kFieldOfColdStart, base::ErrorReason::kInvalidField,
      fmt::format("{} is of type {}, which has no order{}", filter::FieldText(field->name),
                  NameOf(field->type), FieldsWithOrder(payload)));
}

constexpr float kNoThreshold = -std::numeric_limits<float>::infinity();

// The name of scores that are at least -1; empty for scores without a lower bound.
std::string_view BoundedScores(const QueryRequest& request, Metric metric) {
  const auto* const examples = std::get_if<ByExamples>(&request.target);
  if (examples != nullptr && examples->strategy == Strategy::kSumScores) return {};
  if (examples != nullptr && examples->strategy == Strategy::kBestScore) return "best_score";
  return metric == Metric::kCosine ? "cosine" : std::string_view();
}

void AddDiversityNotes(const QueryRequest& request, std::vector<std::string>& notes) {
  if (request.diversity->lambda == 1) {
    notes.emplace_back("diversity has no effect: with lambda 1 the score alone decides");
  } else if (std::uint64_t{request.offset} + request.k == 1) {
    notes.emplace_back("diversity has no effect on a single hit, which is the best by score");
  }
}

// Equal weights leave a weighted mean as it is.
void AddWeightNote(std::string_view part, const std::vector<Example>& examples,
                   std::vector<std::string>& notes) {
  if (examples.empty() || examples.front().weight == 1) return;
  const bool equal = std::ranges::all_of(
      examples, [&](const Example& example) { return example.weight == examples.front().weight; });
  if (!equal) return;
  notes.push_back(
      fmt::format("examples.{}: weight {} has no effect: the strategy average_vector takes a "
                  "weighted mean, and "
                  "all weights are equal",
                  part, examples.front().weight));
}

void AddBlendNotes(const ByBlend& blend, std::vector<std::string>& notes) {
  if (blend.user_weight == 0) {
    notes.emplace_back("blend: the user's profile has no effect with user_weight 0");
  } else if (blend.user_weight == 1) {
    notes.emplace_back("blend: the target has no effect on scores with user_weight 1");
  }
}

// Estimated times: a word of both masks; an excluded row looked up in a mask; an excluded row whose
// payload is read.
constexpr std::uint64_t kWordNs = 2;
constexpr std::uint64_t kRowLookedAtNs = 2;
constexpr std::uint64_t kRowReadNs = 300;

// Up to this number of excluded rows are read one by one. The mask of the grouped rows may be gone
// from the cache, and making it again takes a look at all rows.
constexpr std::size_t kRowsReadMax = 16;

}  // namespace

absl::StatusOr<engine::RowOrder> MakeRowOrder(const engine::Snapshot& snapshot,
                                              const ColdStart& cold_start,
                                              const ExistingItems& existing, base::LongWork& work) {
  if (cold_start.order == ColdStart::Order::kMostPopular && cold_start.field.empty()) {
    auto counted = snapshot.user_subsets->Of(existing.users(), snapshot.dataset, work);
    if (!counted.ok()) return counted.status();
    if (!counted->most_seen->empty()) {
      return engine::RowOrder(std::move(counted->most_seen), snapshot.row_count());
    }
    return Refuse("cold_start", base::ErrorReason::kInvalidField,
                  fmt::format("{} has no interactions to tell what is popular; name a field{}",
                              snapshot.collection, FieldsWithOrder(existing.fields())));
  }
  const absl::StatusOr<const Field*> chosen = ChooseField(snapshot, cold_start, existing.fields());
  if (!chosen.ok()) return chosen.status();
  const Field& field = **chosen;
  using Integers = filter::OrderedColumn<std::int64_t>;
  if (const auto* const integers = std::get_if<Integers>(&field.column)) {
    return engine::RowOrder(field.name, integers, snapshot.row_count());
  }
  return engine::RowOrder(field.name,
                          &std::get<filter::OrderedColumn<filter::Number>>(field.column),
                          snapshot.row_count());
}

void AddOptionNotes(const QueryRequest& request, Metric metric, bool cold,
                    std::vector<std::string>& notes) {
  if (cold) {
    constexpr std::string_view kNoScores =
        "has no effect on a cold start, whose hits have no score";
    if (request.diversity) notes.push_back(fmt::format("diversity {}", kNoScores));
    if (request.score_threshold != kNoThreshold) {
      notes.push_back(fmt::format("score_threshold {}", kNoScores));
    }
    return;
  }
  const std::string_view scores = BoundedScores(request, metric);
  if (request.score_threshold != kNoThreshold && request.score_threshold <= -1 && !scores.empty()) {
    notes.push_back(fmt::format("score_threshold {} has no effect: no {} is below -1",
                                request.score_threshold, scores));
  }
  if (request.diversity) AddDiversityNotes(request, notes);
  if (const auto* const blend = std::get_if<ByBlend>(&request.target)) AddBlendNotes(*blend, notes);
  const auto* const examples = std::get_if<ByExamples>(&request.target);
  if (examples == nullptr || examples->strategy != Strategy::kAverageVector) return;
  AddWeightNote("positive", examples->positive, notes);
  AddWeightNote("negative", examples->negative, notes);
}

absl::StatusOr<GroupedRows::Counts> GroupedRows::Count(std::string_view name,
                                                       const filter::GroupField& field,
                                                       const RowMask* mask,
                                                       std::span<const Row> excluded,
                                                       base::LongWork& work) {
  const auto passing = CountPassing(name, mask, work);
  if (!passing.ok()) return passing.status();
  Counts counts{passing->rows, passing->rows - passing->in_groups};
  if (excluded.empty()) return counts;
  std::shared_ptr<const RowMask> grouped;  // null: rows are read
  if (excluded.size() > kRowsReadMax) {
    auto found = snapshot_.filters->RowsInGroups(name, work);
    if (!found.ok()) return found.status();
    grouped = *std::move(found);
  }
  std::vector<std::uint32_t> groups;
  const auto has_group = [&](Row row) {
    if (grouped != nullptr) return grouped->Allows(row);
    field.ReadGroups(row, groups);
    return !groups.empty();
  };
  for (const Row row : excluded) {
    if (mask != nullptr && !mask->Allows(row)) continue;
    --counts.rows;
    if (!has_group(row)) --counts.without_group;
  }
  absl::Status status =
      work.Did(excluded.size() * (grouped != nullptr ? kRowLookedAtNs : kRowReadNs));
  if (!status.ok()) return status;
  return counts;
}

absl::StatusOr<filter::GroupedRowCounts> GroupedRows::CountPassing(std::string_view name,
                                                                   const RowMask* mask,
                                                                   base::LongWork& work) {
  if (mask == snapshot_.searchable.get()) {
    return snapshot_.filters->CountSearchable(name, mask, work);
  }
  const auto known = known_.find({name, mask});
  if (known != known_.end()) return known->second;
  const auto grouped = snapshot_.filters->RowsInGroups(name, work);
  if (!grouped.ok()) return grouped.status();
  absl::Status status = work.Did((*grouped)->words().size() * kWordNs);
  if (!status.ok()) return status;
  const auto counts = filter::CountRowsInGroups(mask, **grouped);
  known_.try_emplace({name, mask}, counts);
  return counts;
}

}  // namespace simile::engine
