#include "data/load/user_scope.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <absl/hash/hash.h>
#include <absl/strings/string_view.h>

namespace simile::data {
namespace {

// The estimated cost of a user, of an item that it has seen and of an item that is sorted.
constexpr std::uint64_t kUserNs = 30;
constexpr std::uint64_t kSeenRowNs = 2;
constexpr std::uint64_t kItemNs = 40;

void SortDistinct(std::vector<std::string>& texts) {
  std::ranges::sort(texts);
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
}

// The rows of a scope's users, ascending.
//   users  those of a collection, or its visitors
// Errors: work's.
absl::StatusOr<std::vector<Row>> FindUserRows(const UserScope& scope, const IdIndex& users,
                                              base::LongWork& work) {
  std::vector<Row> rows;
  for (const std::string& id : scope.ids()) {
    if (const std::optional<Row> row = users.Find(id)) rows.push_back(*row);
    if (absl::Status status = work.Did(kUserNs); !status.ok()) return status;
  }
  if (!scope.prefixes().empty()) {
    rows.clear();
    IdIndex::Digits digits;
    for (Row row = 0; row < users.size(); ++row) {
      if (scope.Has(users.Id(row, digits))) rows.push_back(row);
      if (absl::Status status = work.Did(kUserNs); !status.ok()) return status;
    }
  }
  std::ranges::sort(rows);
  return rows;
}

// Adds to each item's count the number of these users who have seen it.
// Errors: work's.
absl::Status AddCounts(const SeenSets& sets, std::span<const Row> users, base::LongWork& work,
                       std::span<std::uint32_t> counts) {
  for (const Row user : users) {
    const std::span<const Row> seen = sets.Of(user);
    for (const Row item : seen) ++counts[item];
    if (absl::Status status = work.Did(seen.size() * kSeenRowNs); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// Errors: work's.
absl::StatusOr<UserSubset> MakeSubset(const UserScope& scope, const Dataset& dataset,
                                      base::LongWork& work) {
  const Profiles& profiles = dataset.profiles;
  const auto users = FindUserRows(scope, profiles.ids, work);
  if (!users.ok()) return users.status();
  const auto visitors = FindUserRows(scope, profiles.visitor_ids, work);
  if (!visitors.ok()) return visitors.status();
  UserSubset subset{users->size(), 0, std::make_shared<const std::vector<Row>>()};
  for (const Row user : *users) subset.pair_count += profiles.seen.Of(user).size();
  if (subset.pair_count == 0 && visitors->empty()) return subset;
  // Counts the pass over all items below, before it.
  absl::Status status = work.Did(dataset.vectors.row_count());
  if (!status.ok()) return status;
  std::vector<std::uint32_t> counts(dataset.vectors.row_count(), 0);
  status = AddCounts(profiles.seen, *users, work, counts);
  if (status.ok()) status = AddCounts(profiles.visitor_seen, *visitors, work, counts);
  if (!status.ok()) return status;
  const auto seen_items = static_cast<std::uint64_t>(counts.size()) -
                          static_cast<std::uint64_t>(std::ranges::count(counts, 0U));
  status = work.Did(counts.size() + seen_items * kItemNs);
  if (!status.ok()) return status;
  subset.most_seen = std::make_shared<const std::vector<Row>>(SeenSets::ByCount(counts));
  return subset;
}

}  // namespace

UserScope UserScope::Of(std::vector<std::string> prefixes, std::vector<std::string> ids) {
  auto rule = std::make_shared<Rule>();
  SortDistinct(prefixes);
  SortDistinct(ids);
  rule->id_set.insert(ids.begin(), ids.end());
  rule->hash = absl::HashOf(prefixes, ids);
  rule->prefixes = std::move(prefixes);
  rule->ids = std::move(ids);
  UserScope scope;
  scope.rule_ = std::move(rule);
  return scope;
}

std::span<const std::string> UserScope::prefixes() const {
  return rule_ == nullptr ? std::span<const std::string>() : rule_->prefixes;
}

std::span<const std::string> UserScope::ids() const {
  return rule_ == nullptr ? std::span<const std::string>() : rule_->ids;
}

bool UserScope::Has(std::string_view user_id) const {
  if (rule_ == nullptr) return true;
  const auto begins = [&](const std::string& prefix) { return user_id.starts_with(prefix); };
  return std::ranges::any_of(rule_->prefixes, begins) ||
         rule_->id_set.contains(absl::string_view(user_id.data(), user_id.size()));
}

std::optional<Row> UserScope::Find(const IdIndex& users, std::string_view user_id) const {
  return Has(user_id) ? users.Find(user_id) : std::nullopt;
}

bool operator==(const UserScope& a, const UserScope& b) {
  if (a.rule_ == b.rule_) return true;
  if (a.is_all() || b.is_all() || a.rule_->hash != b.rule_->hash) return false;
  return a.rule_->prefixes == b.rule_->prefixes && a.rule_->ids == b.rule_->ids;
}

absl::StatusOr<UserSubset> UserSubsets::Of(const UserScope& scope,
                                           const std::shared_ptr<const Dataset>& dataset,
                                           base::LongWork& work) {
  const Profiles& profiles = dataset->profiles;
  if (scope.is_all()) {
    return UserSubset{
        profiles.ids.size(),
        profiles.seen.pair_count(),
        std::shared_ptr<const std::vector<Row>>(dataset, &profiles.most_seen),
    };
  }
  if (std::optional<UserSubset> known = Find(scope)) return *std::move(known);
  absl::StatusOr<UserSubset> made = MakeSubset(scope, *dataset, work);
  if (made.ok()) Insert(scope, *made);
  return made;
}

std::uint64_t UserSubsets::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::optional<UserSubset> UserSubsets::Find(const UserScope& scope) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(scope);
  if (found == places_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->subset;
}

void UserSubsets::Insert(const UserScope& scope, const UserSubset& subset) {
  // Counts the scope's rule: after a change of the access file only the cache keeps it.
  std::uint64_t rule_bytes = 0;
  for (const auto texts : {scope.prefixes(), scope.ids()}) {
    for (const std::string& text : texts) rule_bytes += 2 * (sizeof(std::string) + text.size());
  }
  const std::uint64_t bytes =
      sizeof(Entry) + rule_bytes + subset.most_seen->capacity() * sizeof(Row);
  if (bytes > bytes_max_) return;
  std::list<Entry> entry;  // complete before it is added: later steps may have no memory
  entry.push_back({scope, subset, bytes});
  const std::lock_guard lock(mutex_);
  // Two threads may have made the same subset.
  if (const auto found = places_.find(scope); found != places_.end()) Drop(found->second);
  while (bytes_ + bytes > bytes_max_) Drop(std::prev(entries_.end()));
  places_.emplace(scope, entry.begin());
  entries_.splice(entries_.begin(), entry);
  bytes_ += bytes;
}

void UserSubsets::Drop(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes;
  places_.erase(entry->scope);
  entries_.erase(entry);
}

}  // namespace simile::data
