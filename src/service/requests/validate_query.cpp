#include "service/requests/validate_query.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include <absl/status/statusor.h>

#include "base/message_text.h"
#include "service/requests/request_fields.h"
#include "simile/v1/search.pb.h"
#include "simile/v1/types.pb.h"

namespace simile::service {
namespace {

constexpr float kWeightMax = 1e6F;

constexpr std::string_view kVector = "vector";
constexpr std::string_view kPackedVector = "packed_vector";

absl::StatusOr<engine::ByVector> ValidateVector(const FieldPath& path, const v1::FloatVector& from,
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
  return engine::ByVector{numbers, from.as_stored(), kVector};
}

absl::StatusOr<engine::ByVector> ValidateVector(const FieldPath& path, const v1::PackedVector& from,
                                                std::string_view data, const Limits& limits) {
  const auto numbers = ValidateVectorBytes({kPackedVector, &path}, from, data, limits.dim_max);
  if (!numbers.ok()) return numbers.status();
  return engine::ByVector{*numbers, from.as_stored(), kPackedVector};
}

// The searched collection, the limits, and the data of the query's vector if the message lacks it.
struct Rules {
  std::string_view collection;
  const Limits& limits;
  std::string_view sent_data;
};

absl::StatusOr<engine::VectorOrItem> ValidateItem(const FieldPath& path,
                                                  const v1::CollectionItem& from,
                                                  const Rules& rules) {
  const FieldPath item{"item", &path};
  const FieldPath collection{"collection", &item};
  absl::Status status = CheckCollectionName(collection, from.collection(), rules.limits);
  if (status.ok()) status = CheckId({"id", &item}, from.id(), rules.limits);
  if (!status.ok()) return status;
  if (from.collection() == rules.collection) return engine::ByItem{from.id(), "item.id"};
  return engine::ByOtherItem{from.collection(), from.id()};
}

// The vector or item of a query, an example or a blend.
//   Message  one with vector, packed_vector, id and item
template <class Message>
absl::StatusOr<engine::VectorOrItem> ValidateVectorOrItem(const FieldPath& path,
                                                          const Message& from, const Rules& rules) {
  const Limits& limits = rules.limits;
  if (from.has_vector()) return ValidateVector(path, from.vector(), limits);
  if (from.has_packed_vector()) {
    const std::string_view own = from.packed_vector().data();
    return ValidateVector(path, from.packed_vector(), own.empty() ? rules.sent_data : own, limits);
  }
  if (from.has_item()) return ValidateItem(path, from.item(), rules);
  if (!from.has_id()) return Refuse(path, "no target; set vector, packed_vector, id or item");
  if (absl::Status status = CheckId({"id", &path}, from.id(), limits); !status.ok()) return status;
  return engine::ByItem{from.id()};
}

absl::Status AddExamples(const FieldPath& path,
                         const google::protobuf::RepeatedPtrField<v1::Example>& from,
                         const Rules& rules, std::vector<engine::Example>& examples) {
  for (int index = 0; index < from.size(); ++index) {
    const FieldPath place{path.name, path.parent, index};
    auto target = ValidateVectorOrItem(place, from[index], rules);
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

absl::StatusOr<engine::ByExamples> ValidateExamples(const FieldPath& path, const v1::Examples& from,
                                                    const Rules& rules) {
  const Limits& limits = rules.limits;
  const auto count = static_cast<std::uint32_t>(from.positive_size() + from.negative_size());
  if (count == 0) return Refuse(path, "none; give positive examples, negative ones, or both");
  if (count > limits.examples_max) {
    return Refuse(path, "{} examples; at most {}", base::Grouped(count), limits.examples_max);
  }
  engine::ByExamples examples;
  switch (from.strategy()) {
    case v1::Examples::STRATEGY_AVERAGE_VECTOR:
      if (from.positive().empty()) {
        return Refuse(path,
                      "the strategy average_vector needs a positive example; add one, or take "
                      "best_score or sum_scores");
      }
      examples.strategy = engine::Strategy::kAverageVector;
      break;
    case v1::Examples::STRATEGY_BEST_SCORE:
      examples.strategy = engine::Strategy::kBestScore;
      break;
    case v1::Examples::STRATEGY_SUM_SCORES:
      examples.strategy = engine::Strategy::kSumScores;
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

absl::StatusOr<engine::ByBlend> ValidateBlend(const FieldPath& path, const v1::Blend& from,
                                              bool exclude_seen, const Rules& rules) {
  auto target = ValidateVectorOrItem(path, from, rules);
  if (!target.ok()) return target.status();
  absl::Status status = CheckId({"user_id", &path}, from.user_id(), rules.limits);
  if (!status.ok()) return status;
  const float user_weight = from.has_user_weight() ? from.user_weight() : 0.5F;
  if (!(user_weight >= 0 && user_weight <= 1)) {
    return Refuse({"user_weight", &path}, "{}; give 0 (the target alone) to 1 (the user alone)",
                  user_weight);
  }
  return engine::ByBlend{*std::move(target), {from.user_id(), exclude_seen}, user_weight};
}

constexpr std::uint64_t kCandidatesPerHit = 10;
constexpr std::uint64_t kCandidatesMin = 100;

absl::Status CheckFieldName(const FieldPath& field, std::string_view name, const Limits& limits) {
  if (name.size() <= limits.field_name_bytes_max) return absl::OkStatus();
  return Refuse(field, "{} bytes; a field's name has at most {}", base::Grouped(name.size()),
                limits.field_name_bytes_max);
}

}  // namespace

absl::StatusOr<engine::VectorBytes> ValidateVectorBytes(const FieldPath& field,
                                                        const v1::PackedVector& packed,
                                                        std::string_view data,
                                                        std::uint32_t dim_max) {
  std::size_t number_bytes = 0;
  switch (packed.format()) {
    case v1::PackedVector::FORMAT_F32_LE:
      number_bytes = 4;
      break;
    case v1::PackedVector::FORMAT_F16_LE:
      number_bytes = 2;
      break;
    default:
      return RefuseEnum({"format", &field}, packed.format(), "FORMAT_F32_LE or FORMAT_F16_LE");
  }
  const FieldPath bytes{"data", &field};
  if (data.empty()) return Refuse(bytes, "empty; send {} bytes for each dimension", number_bytes);
  if (data.size() % number_bytes != 0) {
    return Refuse(bytes, "{} bytes; {} takes {} for each dimension, so a multiple of {}",
                  base::Grouped(data.size()), v1::PackedVector::Format_Name(packed.format()),
                  number_bytes, number_bytes);
  }
  const std::size_t dim = data.size() / number_bytes;
  if (dim > dim_max) {
    return Refuse(bytes, "{} dimensions; a vector has at most {}", base::Grouped(dim),
                  base::Grouped(dim_max));
  }
  using Format = engine::VectorBytes::Format;
  return engine::VectorBytes(number_bytes == 4 ? Format::kF32 : Format::kF16, data);
}

absl::Status SetTarget(const FieldPath& path, const v1::Query& from, std::string_view sent_data,
                       std::string_view collection, bool exclude_seen, const Limits& limits,
                       engine::QueryRequest& query) {
  const Rules rules{collection, limits, sent_data};
  switch (from.target_case()) {
    case v1::Query::kVector:
    case v1::Query::kPackedVector:
    case v1::Query::kId:
    case v1::Query::kItem: {
      auto target = ValidateVectorOrItem(path, from, rules);
      if (!target.ok()) return target.status();
      std::visit([&](auto& each) { query.target = std::move(each); }, *target);
      break;
    }
    case v1::Query::kExamples: {
      auto examples = ValidateExamples({"examples", &path}, from.examples(), rules);
      if (!examples.ok()) return examples.status();
      query.target = *std::move(examples);
      break;
    }
    case v1::Query::kUserId: {
      absl::Status status = CheckId({"user_id", &path}, from.user_id(), limits);
      if (!status.ok()) return status;
      query.target = engine::ByUser{from.user_id(), exclude_seen};
      return absl::OkStatus();
    }
    case v1::Query::kBlend: {
      auto blend = ValidateBlend({"blend", &path}, from.blend(), exclude_seen, rules);
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

absl::StatusOr<engine::Diversity> ValidateDiversity(const FieldPath& field,
                                                    const v1::Diversity& from, std::uint32_t k,
                                                    const Limits& limits) {
  engine::Diversity diversity;
  if (from.has_lambda()) diversity.lambda = from.lambda();
  // NaN fails both.
  if (!(diversity.lambda >= 0 && diversity.lambda <= 1)) {
    return Refuse({"lambda", &field}, "{}; give 0 (difference alone) to 1 (score alone)",
                  diversity.lambda);
  }
  const std::uint64_t usual = std::clamp<std::uint64_t>(kCandidatesPerHit * k, kCandidatesMin,
                                                        limits.diversity_candidates_max);
  diversity.candidates =
      from.has_candidates() ? from.candidates() : static_cast<std::uint32_t>(usual);
  if (diversity.candidates < 1 || diversity.candidates > limits.diversity_candidates_max) {
    return Refuse({"candidates", &field}, "{}; give 1 to {}", base::Grouped(diversity.candidates),
                  base::Grouped(limits.diversity_candidates_max));
  }
  return diversity;
}

absl::StatusOr<engine::GroupRequest> ValidateGroupBy(const FieldPath& field,
                                                     const v1::GroupBy& from,
                                                     const Limits& limits) {
  const FieldPath name{"field", &field};
  if (from.field().empty()) return Refuse(name, "empty; name a field of keywords or integers");
  absl::Status status = CheckFieldName(name, from.field(), limits);
  if (!status.ok()) return status;
  engine::GroupRequest group_by{from.field(), from.has_group_size() ? from.group_size() : 1};
  status = CheckK({"group_size", &field}, group_by.group_size, limits);
  if (!status.ok()) return status;
  return group_by;
}

absl::StatusOr<engine::ColdStart> ValidateColdStart(const FieldPath& field,
                                                    const v1::ColdStart& from,
                                                    const Limits& limits) {
  absl::Status status = CheckFieldName({"field", &field}, from.field(), limits);
  if (!status.ok()) return status;
  engine::ColdStart cold_start;
  cold_start.field = from.field();
  switch (from.order()) {
    case v1::ColdStart::ORDER_NEWEST:
      cold_start.order = engine::ColdStart::Order::kNewest;
      return cold_start;
    case v1::ColdStart::ORDER_MOST_POPULAR:
      cold_start.order = engine::ColdStart::Order::kMostPopular;
      return cold_start;
    default:
      return RefuseEnum({"order", &field}, from.order(), "ORDER_NEWEST or ORDER_MOST_POPULAR");
  }
}

absl::Status CheckReach(const FieldPath& path, std::uint64_t skipped,
                        const engine::QueryRequest& query, const Limits& limits) {
  const std::uint64_t last = skipped + query.k;
  if (query.group_by && last * query.group_by->group_size > limits.k_max) {
    return Refuse({"group_by", &path},
                  "{} groups of {} rows are more than {}; ask for fewer or smaller ones",
                  base::Grouped(last), base::Grouped(query.group_by->group_size),
                  base::Grouped(limits.k_max));
  }
  if (query.diversity && last > query.diversity->candidates) {
    const FieldPath diversity{"diversity", &path};
    return Refuse({"candidates", &diversity},
                  "{}; {} rows are wanted, offset included: raise it (up to {}), or lower k",
                  base::Grouped(query.diversity->candidates), base::Grouped(last),
                  base::Grouped(limits.diversity_candidates_max));
  }
  if (last <= limits.k_max) return absl::OkStatus();
  return Refuse({"offset", &path}, "{}; offset + k may be at most {}, and k is {}",
                base::Grouped(skipped), base::Grouped(limits.k_max), base::Grouped(query.k));
}

}  // namespace simile::service
