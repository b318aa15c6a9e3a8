#include "filter/filters.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "filter/evaluate.h"
#include "filter/parser.h"
#include "filter/suggestions.h"

namespace simile::filter {
namespace {

// A mask of a million rows takes 122 KiB.
constexpr std::uint64_t kCacheBytesMax = 64U << 20;

// Bounds the work of the filters of one call: together they may look this often at every row. A
// small collection counts as kRowsMin rows. 256 allows each of Limits::filters_per_call_max filters
// one look at a row. Typical filters look at each row fewer than ten times.
constexpr std::uint64_t kLooksPerRowMax = 256;
constexpr std::uint64_t kRowsMin = 4'096;

}  // namespace

std::shared_ptr<const RowMask> MaskCache::Find(std::string_view text) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(absl::string_view(text.data(), text.size()));
  if (found == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->mask;
}

void MaskCache::Insert(const std::string& text, std::shared_ptr<const RowMask> mask) {
  const std::uint64_t bytes = mask->bytes() + text.size() + sizeof(Entry);
  if (bytes > bytes_max_) return;
  std::list<Entry>
      entry;  // complete before it is added, because the next steps may throw bad_alloc
  entry.push_back({text, std::move(mask), bytes});
  const std::lock_guard lock(mutex_);
  // Two threads may have evaluated the same filter.
  if (const auto found = places_.find(text); found != places_.end()) Drop(found->second);
  while (bytes_ + bytes > bytes_max_) Drop(std::prev(entries_.end()));
  places_.emplace(entry.front().text, entry.begin());
  entries_.splice(entries_.begin(), entry);
  bytes_ += bytes;
}

void MaskCache::Drop(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes;
  places_.erase(entry->text);
  entries_.erase(entry);
}

std::uint64_t MaskCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

GroupedRowCounts CountRowsInGroups(const RowMask* rows, const RowMask& grouped) {
  if (rows == nullptr) return {grouped.row_count(), grouped.AllowedCount()};
  GroupedRowCounts counts;
  for (std::size_t word = 0; word < rows->words().size(); ++word) {
    const std::uint64_t bits = rows->words()[word];
    counts.rows += static_cast<std::uint64_t>(std::popcount(bits));
    counts.in_groups += static_cast<std::uint64_t>(std::popcount(bits & grouped.words()[word]));
  }
  return counts;
}

std::unique_ptr<const Filters> Filters::Create(const data::Dataset& dataset,
                                               std::string collection) {
  return std::unique_ptr<const Filters>(
      new Filters(dataset, std::move(collection), PayloadIndex::Build(dataset.payload)));
}

Filters::Filters(const data::Dataset& dataset, std::string collection, PayloadIndex payload)
    : dataset_(dataset),
      collection_(std::move(collection)),
      payload_(std::move(payload)),
      cache_(kCacheBytesMax) {}

absl::StatusOr<PreparedFilter> Filters::Prepare(std::string_view filter, const PayloadView& fields,
                                                base::LongWork& work) const {
  constexpr std::uint64_t kByteNs = 20;
  absl::Status status = work.Did(filter.size() * kByteNs);
  if (!status.ok()) return status;
  absl::StatusOr<Expression> expression = Parse(filter);
  if (!expression.ok()) return expression.status();
  PreparedFilter prepared;
  prepared.text = ToText(*expression);
  prepared.expression = *std::move(expression);
  prepared.rows = cache_.Find(prepared.text);
  if (prepared.rows != nullptr && fields.has_all()) return prepared;
  const absl::StatusOr<std::uint64_t> looks =
      EstimateLooks(prepared.expression, {collection_, fields, dataset_.ids});
  if (!looks.ok()) return looks.status();
  if (prepared.rows != nullptr) return prepared;
  prepared.looks = *looks;
  return prepared;
}

absl::Status Filters::CheckLooks(std::uint64_t looks, const PayloadView& fields) const {
  const std::uint64_t rows = std::max<std::uint64_t>(dataset_.ids.size(), kRowsMin);
  if (looks <= kLooksPerRowMax * rows) return absl::OkStatus();
  if (!fields.has_all()) {
    return base::Error(
        base::ErrorReason::kInvalidFilter,
        fmt::format("the filters of this call look too often at the rows of {}: send fewer "
                    "different filters a call, or shorter ones; a filter used lately costs nothing",
                    collection_));
  }
  return base::Error(
      base::ErrorReason::kInvalidFilter,
      fmt::format(
          "the filters of this call look about {} times at every row of {}, and at most {} "
          "times are allowed: send fewer different filters a call, or shorter ones; a filter "
          "used lately costs nothing",
          base::Grouped((looks + rows - 1) / rows), collection_, kLooksPerRowMax));
}

absl::StatusOr<std::shared_ptr<const RowMask>> Filters::Rows(const PreparedFilter& filter,
                                                             base::LongWork& work) const {
  if (filter.rows != nullptr) return filter.rows;
  if (absl::Status status = work.Ask(); !status.ok()) return status;
  absl::StatusOr<RowMask> rows =
      Evaluate(filter.expression, {collection_, payload_, dataset_.ids}, work);
  if (!rows.ok()) return rows.status();
  auto mask = std::make_shared<const RowMask>(*std::move(rows));
  cache_.Insert(filter.text, mask);
  return mask;
}

absl::StatusOr<RowMask> Filters::RowsOfPart(const Expression& part, base::LongWork& work) const {
  return Evaluate(part, {collection_, payload_, dataset_.ids}, work);
}

NamedRows Filters::Intersection(const NamedRows& a, const NamedRows& b) const {
  if (a.rows == nullptr) return b;
  if (b.rows == nullptr) return a;
  NamedRows both;
  both.name = a.name + '\0' + b.name;  // a canonical text holds no control characters
  both.rows = cache_.Find(both.name);
  if (both.rows != nullptr) return both;
  auto rows = std::make_shared<RowMask>(*a.rows);
  rows->IntersectWith(*b.rows);
  both.rows = std::move(rows);
  cache_.Insert(both.name, both.rows);
  return both;
}

absl::StatusOr<PayloadView> Filters::FindFields(const NamedRows& rows, base::LongWork& work) const {
  constexpr std::uint64_t kLookNs = 2;
  constexpr std::size_t kKeptMax = 1'024;
  if (rows.rows == nullptr) return PayloadView(payload_);
  {
    const std::lock_guard lock(mutex_);
    const auto known = visible_.find(rows.name);
    if (known != visible_.end()) return PayloadView(payload_, known->second);
  }
  std::vector<bool> visible;
  visible.reserve(payload_.fields().size());
  for (const Field& field : payload_.fields()) {
    const std::uint64_t looks = field.present.looks() + field.unfit.looks();
    if (absl::Status status = work.Did(looks * kLookNs); !status.ok()) return status;
    visible.push_back(field.present.FirstAllowed(*rows.rows).has_value() ||
                      field.unfit.FirstAllowed(*rows.rows).has_value());
  }
  auto kept = std::make_shared<const std::vector<bool>>(std::move(visible));
  const std::lock_guard lock(mutex_);
  if (visible_.size() == kKeptMax) visible_.clear();  // of access files that were replaced
  return PayloadView(payload_, visible_.try_emplace(rows.name, std::move(kept)).first->second);
}

absl::StatusOr<GroupField> Filters::FindGroups(std::string_view name,
                                               const PayloadView& fields) const {
  const Field* const field = fields.Find(name);
  if (field == nullptr) {
    return base::Error(base::ErrorReason::kUnknownPayloadField,
                       UnknownField(collection_, name, fields));
  }
  if (!GroupField::Groups(field->type)) {
    std::vector<std::string> group_fields;
    for (const Field& each : fields.fields()) {
      if (GroupField::Groups(each.type)) group_fields.push_back(FieldText(each.name));
    }
    return base::Error(
        base::ErrorReason::kInvalidField,
        fmt::format("{} is of type {}; rows are grouped by keywords or integers: {}",
                    FieldText(name), NameOf(field->type),
                    group_fields.empty() ? "this collection has none"
                                         : fmt::format("{}", fmt::join(group_fields, ", "))));
  }
  const auto number = static_cast<std::uint32_t>(field - payload_.fields().data());
  return GroupField(dataset_.payload, number, *field);
}

absl::StatusOr<std::shared_ptr<const RowMask>> Filters::RowsInGroups(std::string_view name,
                                                                     base::LongWork& work) const {
  constexpr std::uint64_t kGroupNs = 40;
  constexpr std::uint64_t kLookNs = 2;
  const std::string key = fmt::format("\1{}", name);  // no filter's text begins with this character
  if (auto known = cache_.Find(key)) return known;
  if (absl::Status status = work.Ask(); !status.ok()) return status;
  const absl::StatusOr<GroupField> field = FindGroups(name, payload_);
  if (!field.ok()) return field.status();
  auto rows = std::make_shared<RowMask>(dataset_.ids.size());
  for (std::uint32_t group = 0; group < field->number_end(); ++group) {
    field->AddRows(group, *rows);
    absl::Status status = work.Did(kGroupNs + field->LooksFor(group) * kLookNs);
    if (!status.ok()) return status;
  }
  cache_.Insert(key, rows);
  return rows;
}

absl::StatusOr<GroupedRowCounts> Filters::CountSearchable(std::string_view field,
                                                          const RowMask* searchable,
                                                          base::LongWork& work) const {
  constexpr std::uint64_t kWordNs = 2;
  const std::string name(field);
  {
    const std::lock_guard lock(mutex_);
    const auto known = searchable_.find(name);
    if (known != searchable_.end()) return known->second;
  }
  const auto grouped = RowsInGroups(field, work);
  if (!grouped.ok()) return grouped.status();
  absl::Status status = work.Did((*grouped)->words().size() * kWordNs);
  if (!status.ok()) return status;
  const GroupedRowCounts counts = CountRowsInGroups(searchable, **grouped);
  const std::lock_guard lock(mutex_);
  searchable_.try_emplace(name, counts);
  return counts;
}

}  // namespace simile::filter
