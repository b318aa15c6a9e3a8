#include "filter/filters.h"

#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "filter/evaluate.h"
#include "filter/parser.h"
#include "filter/unknown_field.h"

namespace simile::filter {
namespace {

// A mask of a million rows takes 122 KiB.
constexpr std::uint64_t kCacheBytesMax = 64U << 20;

}  // namespace

std::unique_ptr<const Filters> Filters::Create(const data::Dataset& dataset,
                                               std::string collection) {
  return std::unique_ptr<const Filters>(new Filters(
      dataset, std::move(collection), PayloadIndex::Build(dataset.payload, dataset.field_types)));
}

Filters::Filters(const data::Dataset& dataset, std::string collection, PayloadIndex payload)
    : dataset_(dataset),
      collection_(std::move(collection)),
      payload_(std::move(payload)),
      cache_(kCacheBytesMax) {}

absl::StatusOr<std::shared_ptr<const RowMask>> Filters::Rows(std::string_view filter) const {
  const absl::StatusOr<Expression> expression = Parse(filter);
  if (!expression.ok()) return expression.status();
  const std::string text = ToText(*expression);
  if (std::shared_ptr<const RowMask> known = cache_.Find(text)) return known;
  absl::StatusOr<RowMask> rows = Evaluate(*expression, {collection_, payload_, dataset_.ids});
  if (!rows.ok()) return rows.status();
  auto mask = std::make_shared<const RowMask>(*std::move(rows));
  cache_.Insert(text, mask);
  return mask;
}

absl::StatusOr<KeywordField> Filters::FindKeywords(std::string_view name) const {
  const Field* const field = payload_.Find(name);
  if (field == nullptr) {
    return base::Error(base::ErrorReason::kUnknownPayloadField,
                       UnknownField(collection_, name, payload_));
  }
  if (!std::holds_alternative<KeywordColumn>(field->column)) {
    std::vector<std::string> keyword_fields;
    for (const Field& each : payload_.fields()) {
      if (std::holds_alternative<KeywordColumn>(each.column)) {
        keyword_fields.push_back(FieldText(each.name));
      }
    }
    return base::Error(
        base::ErrorReason::kInvalidField,
        fmt::format("{} is of type {}; rows are grouped by keywords: {}", FieldText(name),
                    NameOf(field->type),
                    keyword_fields.empty() ? "this collection has none"
                                           : fmt::format("{}", fmt::join(keyword_fields, ", "))));
  }
  const auto number = static_cast<std::uint32_t>(field - payload_.fields().data());
  return KeywordField(dataset_.payload, number, *field);
}

}  // namespace simile::filter
