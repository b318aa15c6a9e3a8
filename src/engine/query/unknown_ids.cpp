#include "engine/query/unknown_ids.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"

namespace simile::engine {
namespace {

// The most comparisons of unknown ids with known ids in one call.
constexpr std::uint64_t kOfferLooksMax = 4'000'000;

// Adds the ids of a query that do not exist.
class UnknownIdFinder {
 public:
  UnknownIdFinder(const ExistingItems& items, OtherItems& others, UnknownIds& unknown)
      : items_(items), others_(others), unknown_(unknown) {}

  void Find(const QueryRequest& request) {
    asks_cold_start_ = request.cold_start.has_value();
    std::visit(*this, request.target);
  }
  const absl::Status& status() const { return status_; }  // work's error

  void operator()(const ByVector&) const {}
  void operator()(const ByItem& item) const {
    if (!items_.Find(item.id)) unknown_.Add(UnknownIds::Kind::kItem, item.id);
  }
  // An item of a collection that the call cannot use is not counted.
  void operator()(const ByOtherItem& item) {
    if (!status_.ok()) return;
    const auto other = others_.Of({}, item.collection);
    if (OtherItems::IsOfWork(other.status())) status_ = other.status();
    if (!other.ok() || (*other)->existing.Find(item.id)) return;
    unknown_.Add(UnknownIds::Kind::kOtherItem, fmt::format("{}/{}", item.collection, item.id));
  }
  void operator()(const ByUser& user) const {
    if (!asks_cold_start_) AddUser(user);
  }
  void operator()(const ByExamples& examples) {
    for (const auto* const some : {&examples.positive, &examples.negative}) {
      for (const Example& example : *some) std::visit(*this, example.target);
    }
  }
  void operator()(const ByBlend& blend) {
    std::visit(*this, blend.target);
    AddUser(blend.user);  // a cold start is for queries by a user alone
  }

 private:
  // When the collection has no users at all, the first error says so and lists none.
  void AddUser(const ByUser& user) const {
    if (items_.has_users() && !items_.FindUser(user.id))
      unknown_.Add(UnknownIds::Kind::kUser, user.id);
  }

  const ExistingItems& items_;
  OtherItems& others_;
  absl::Status status_;
  UnknownIds& unknown_;
  bool asks_cold_start_ = false;
};

}  // namespace

void UnknownIds::Add(Kind kind, std::string_view id) {
  const auto [seen, is_new] = seen_.emplace(kind, id);
  if (!is_new || named_count_ == kNamedMax) return;
  named_[static_cast<std::size_t>(kind)].push_back(seen->second);
  ++named_count_;
}

std::string NamedIdsText(std::span<const std::string_view> first, std::uint64_t count) {
  std::string text;
  for (const std::string_view id : first) {
    text.append(text.empty() ? "" : ", ").append(base::Quoted(id));
  }
  if (count > first.size()) {
    text += fmt::format(", and {} more", base::Grouped(count - first.size()));
  }
  return text;
}

std::string UnknownIds::KindsText() const {
  static constexpr std::array<std::string_view, 3> kOne = {"item", "user",
                                                           "item of another collection"};
  static constexpr std::array<std::string_view, 3> kSeveral = {"items", "users",
                                                               "items of other collections"};
  std::size_t unnamed = count() - named_count_;  // written after the last named id
  std::string text;
  for (std::size_t kind = named_.size(); kind-- > 0;) {
    const std::vector<std::string_view>& ids = named_[kind];
    if (ids.empty()) continue;
    text = fmt::format("{} {}{}{}", ids.size() == 1 ? kOne[kind] : kSeveral[kind],
                       NamedIdsText(ids, ids.size() + unnamed), text.empty() ? "" : ", ", text);
    unnamed = 0;
  }
  return text;
}

std::string UnknownIds::Text(std::string_view collection) const {
  const bool of_others = !named_[static_cast<std::size_t>(Kind::kOtherItem)].empty();
  return fmt::format("{} {} not in {}: {}", base::Counted(count(), "id"),
                     count() == 1 ? "is" : "are", of_others ? "their collections" : collection,
                     KindsText());
}

absl::Status NameAllUnknown(const absl::Status& first, std::span<const QueryRequest> requests,
                            const ExistingItems& items, OtherItems& others,
                            std::string_view collection) {
  UnknownIds unknown;
  UnknownIdFinder finder(items, others, unknown);
  for (const QueryRequest& request : requests) finder.Find(request);
  if (!finder.status().ok()) return finder.status();
  if (unknown.count() <= 1) return first;
  return base::WithMessage(first, unknown.Text(collection));
}

std::uint64_t OffersMax(const engine::Snapshot& snapshot, const OtherCollections& others) {
  const auto count_of = [](const engine::Snapshot& each) {
    const data::Dataset& dataset = *each.dataset;
    return std::max<std::uint64_t>(dataset.ids.size(), dataset.profiles.ids.size());
  };
  std::uint64_t ids = std::max<std::uint64_t>(1, count_of(snapshot));
  for (const auto& [name, other] : others) {
    if (other.ok()) ids = std::max(ids, count_of(*other->snapshot));
  }
  return std::max<std::uint64_t>(1, kOfferLooksMax / ids);
}

}  // namespace simile::engine
