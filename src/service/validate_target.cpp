#include "service/validate_target.h"

#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include <absl/status/statusor.h>

#include "base/message_text.h"
#include "service/collection_name.h"
#include "service/packed_vector.h"
#include "service/refuse.h"
#include "service/validate_fields.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

constexpr float kWeightMax = 1e6F;

constexpr std::string_view kVector = "vector";
constexpr std::string_view kPackedVector = "packed_vector";

absl::StatusOr<query::ByVector> VectorOf(const FieldPath& path, const v1::FloatVector& from,
                                         const Limits& limits) {
  const auto& values = from.values();
  const FieldPath field{kVector, &path};
  if (values.empty()) return Refuse(field, "empty; send a number for each dimension");
  if (static_cast<std::uint32_t>(values.size()) > limits.dim_max) {
    return Refuse(field, "{} dimensions; a vector has at most {}",
                  base::Grouped(static_cast<std::uint64_t>(values.size())),
                  base::Grouped(limits.dim_max));
  }
  const std::span<const float> numbers(values.data(), static_cast<std::size_t>(values.size()));
  return query::ByVector{numbers, from.as_stored(), kVector};
}

absl::StatusOr<query::ByVector> VectorOf(const FieldPath& path, const v1::PackedVector& from,
                                         std::string_view data, const Limits& limits) {
  const auto numbers = VectorBytesOf({kPackedVector, &path}, from, data, limits.dim_max);
  if (!numbers.ok()) return numbers.status();
  return query::ByVector{*numbers, from.as_stored(), kPackedVector};
}

// The searched collection, the limits, and the data of the query's vector if the message lacks it.
struct Rules {
  std::string_view collection;
  const Limits& limits;
  std::string_view sent_data;
};

absl::StatusOr<query::VectorOrItem> ItemOf(const FieldPath& path, const v1::CollectionItem& from,
                                           const Rules& rules) {
  const FieldPath item{"item", &path};
  const FieldPath collection{"collection", &item};
  absl::Status status = CheckCollectionName(collection, from.collection(), rules.limits);
  if (status.ok()) status = CheckId({"id", &item}, from.id(), rules.limits);
  if (!status.ok()) return status;
  if (from.collection() == rules.collection) return query::ByItem{from.id(), "item.id"};
  return query::ByOtherItem{from.collection(), from.id()};
}

// The vector or item of a query, an example or a blend.
//   Message  one with vector, packed_vector, id and item
template <class Message>
absl::StatusOr<query::VectorOrItem> VectorOrItemOf(const FieldPath& path, const Message& from,
                                                   const Rules& rules) {
  const Limits& limits = rules.limits;
  if (from.has_vector()) return VectorOf(path, from.vector(), limits);
  if (from.has_packed_vector()) {
    const std::string_view own = from.packed_vector().data();
    return VectorOf(path, from.packed_vector(), own.empty() ? rules.sent_data : own, limits);
  }
  if (from.has_item()) return ItemOf(path, from.item(), rules);
  if (!from.has_id()) return Refuse(path, "no target; set vector, packed_vector, id or item");
  if (absl::Status status = CheckId({"id", &path}, from.id(), limits); !status.ok()) return status;
  return query::ByItem{from.id()};
}

absl::Status AddExamples(const FieldPath& path,
                         const google::protobuf::RepeatedPtrField<v1::Example>& from,
                         const Rules& rules, std::vector<query::Example>& examples) {
  for (int index = 0; index < from.size(); ++index) {
    const FieldPath place{path.name, path.parent, index};
    auto target = VectorOrItemOf(place, from[index], rules);
    if (!target.ok()) return target.status();
    const float weight = from[index].has_weight() ? from[index].weight() : 1;
    if (!(weight > 0 && weight <= kWeightMax)) {  // NaN fails both
      return Refuse(
          {"weight", &place}, "{}; give a number above 0, up to 1,000,000{}", weight,
          weight < 0 ? "; what the rows should be unlike belongs to the negative examples" : "");
    }
    examples.push_back({*std::move(target), weight});
  }
  return absl::OkStatus();
}

absl::StatusOr<query::ByExamples> ExamplesOf(const FieldPath& path, const v1::Examples& from,
                                             const Rules& rules) {
  const Limits& limits = rules.limits;
  const auto count = static_cast<std::uint32_t>(from.positive_size() + from.negative_size());
  if (count == 0) return Refuse(path, "none; give positive examples, negative ones, or both");
  if (count > limits.examples_max) {
    return Refuse(path, "{} examples; at most {}", base::Grouped(count), limits.examples_max);
  }
  query::ByExamples examples;
  switch (from.strategy()) {
    case v1::Examples::STRATEGY_AVERAGE_VECTOR:
      if (from.positive().empty()) {
        return Refuse(path,
                      "the strategy average_vector needs a positive example; add one, or take "
                      "best_score or sum_scores");
      }
      examples.strategy = query::Strategy::kAverageVector;
      break;
    case v1::Examples::STRATEGY_BEST_SCORE:
      examples.strategy = query::Strategy::kBestScore;
      break;
    case v1::Examples::STRATEGY_SUM_SCORES:
      examples.strategy = query::Strategy::kSumScores;
      break;
    default:
      return RefuseEnum({"strategy", &path}, from.strategy(),
                        "STRATEGY_AVERAGE_VECTOR, STRATEGY_BEST_SCORE or STRATEGY_SUM_SCORES");
  }
  absl::Status status = AddExamples({"positive", &path}, from.positive(), rules, examples.positive);
  if (status.ok()) {
    status = AddExamples({"negative", &path}, from.negative(), rules, examples.negative);
  }
  if (!status.ok()) return status;
  return examples;
}

absl::StatusOr<query::ByBlend> BlendOf(const FieldPath& path, const v1::Blend& from,
                                       bool exclude_seen, const Rules& rules) {
  auto target = VectorOrItemOf(path, from, rules);
  if (!target.ok()) return target.status();
  absl::Status status = CheckId({"user_id", &path}, from.user_id(), rules.limits);
  if (!status.ok()) return status;
  const float user_weight = from.has_user_weight() ? from.user_weight() : 0.5F;
  if (!(user_weight >= 0 && user_weight <= 1)) {
    return Refuse({"user_weight", &path}, "{}; give 0 (the target alone) to 1 (the user alone)",
                  user_weight);
  }
  return query::ByBlend{*std::move(target), {from.user_id(), exclude_seen}, user_weight};
}

}  // namespace

absl::Status SetTarget(const FieldPath& path, const v1::Query& from, std::string_view sent_data,
                       std::string_view collection, bool exclude_seen, const Limits& limits,
                       query::QueryRequest& query) {
  const Rules rules{collection, limits, sent_data};
  switch (from.target_case()) {
    case v1::Query::kVector:
    case v1::Query::kPackedVector:
    case v1::Query::kId:
    case v1::Query::kItem: {
      auto target = VectorOrItemOf(path, from, rules);
      if (!target.ok()) return target.status();
      std::visit([&](auto& each) { query.target = std::move(each); }, *target);
      break;
    }
    case v1::Query::kExamples: {
      auto examples = ExamplesOf({"examples", &path}, from.examples(), rules);
      if (!examples.ok()) return examples.status();
      query.target = *std::move(examples);
      break;
    }
    case v1::Query::kUserId: {
      absl::Status status = CheckId({"user_id", &path}, from.user_id(), limits);
      if (!status.ok()) return status;
      query.target = query::ByUser{from.user_id(), exclude_seen};
      return absl::OkStatus();
    }
    case v1::Query::kBlend: {
      auto blend = BlendOf({"blend", &path}, from.blend(), exclude_seen, rules);
      if (!blend.ok()) return blend.status();
      query.target = *std::move(blend);
      return absl::OkStatus();
    }
    case v1::Query::TARGET_NOT_SET:
      return Refuse(path,
                    "no target; set vector, packed_vector, id, item, user_id, examples or blend");
  }
  if (from.exclude_seen()) {
    return Refuse({"exclude_seen", &path}, "only queries by user_id or blend have seen anything");
  }
  return absl::OkStatus();
}

}  // namespace simile::service
