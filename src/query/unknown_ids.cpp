#include "query/unknown_ids.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"

namespace simile::query {
namespace {

// Most ids that those of one call are compared with.
constexpr std::uint64_t kOfferLooksMax = 4'000'000;

// Adds the ids of a query that do not exist.
class UnknownIdFinder {
 public:
  UnknownIdFinder(const ExistingItems& items, UnknownIds& unknown)
      : items_(items), unknown_(unknown) {}

  void Find(const QueryRequest& request) {
    asks_cold_start_ = request.cold_start.has_value();
    std::visit(*this, request.target);
  }

  void operator()(const ByVector&) const {}
  void operator()(const ByItem& item) const {
    if (!items_.Find(item.id)) unknown_.Add(UnknownIds::Kind::kItem, item.id);
  }
  void operator()(const ByUser& user) const {
    if (!asks_cold_start_) AddUser(user);
  }
  void operator()(const ByExamples& examples) const {
    for (const auto* const some : {&examples.positive, &examples.negative}) {
      for (const Example& example : *some) std::visit(*this, example.target);
    }
  }
  void operator()(const ByBlend& blend) const {
    std::visit(*this, blend.target);
    AddUser(blend.user);  // a cold start is for queries by a user alone
  }

 private:
  // Where there are no users at all the first error says that, and not which are unknown.
  void AddUser(const ByUser& user) const {
    if (items_.has_users() && !items_.FindUser(user.id))
      unknown_.Add(UnknownIds::Kind::kUser, user.id);
  }

  const ExistingItems& items_;
  UnknownIds& unknown_;
  bool asks_cold_start_ = false;
};

}  // namespace

void UnknownIds::Add(Kind kind, std::string_view id) {
  if (!seen_.emplace(kind, id).second || named_count_ == kNamedMax) return;
  named_[static_cast<std::size_t>(kind)].push_back(id);
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
  const std::vector<std::string_view>& items = named_[static_cast<std::size_t>(Kind::kItem)];
  const std::vector<std::string_view>& users = named_[static_cast<std::size_t>(Kind::kUser)];
  const std::size_t more = count() - named_count_;  // told after the last id that is named
  std::string text;
  if (!items.empty()) {
    text = fmt::format("item{} {}", items.size() == 1 ? "" : "s",
                       NamedIdsText(items, items.size() + (users.empty() ? more : 0)));
  }
  if (!users.empty()) {
    text += fmt::format("{}user{} {}", text.empty() ? "" : ", ", users.size() == 1 ? "" : "s",
                        NamedIdsText(users, users.size() + more));
  }
  return text;
}

std::string UnknownIds::Text(std::string_view collection) const {
  return fmt::format("{} {} not in {}: {}", base::Counted(count(), "id"),
                     count() == 1 ? "is" : "are", collection, KindsText());
}

absl::Status NameAllUnknown(const absl::Status& first, std::span<const QueryRequest> requests,
                            const ExistingItems& items, std::string_view collection) {
  UnknownIds unknown;
  UnknownIdFinder finder(items, unknown);
  for (const QueryRequest& request : requests) finder.Find(request);
  if (unknown.count() <= 1) return first;
  return base::WithMessage(first, unknown.Text(collection));
}

std::uint64_t OffersMax(const engine::Snapshot& snapshot) {
  const data::Dataset& dataset = *snapshot.dataset;
  const std::uint64_t ids =
      std::max<std::uint64_t>({1, dataset.ids.size(), dataset.profiles.ids.size()});
  return std::max<std::uint64_t>(1, kOfferLooksMax / ids);
}

}  // namespace simile::query
