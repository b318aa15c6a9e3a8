#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/status/statusor.h>

#include "base/long_work.h"
#include "data/load/dataset.h"

namespace simile::data {

// Which users exist for a caller: all users, or users with certain ids or beginnings of ids,
// compared byte by byte. For the caller any other user does not exist. Immutable, cheap to copy,
// safe to share.
class UserScope {
 public:
  UserScope() = default;  // all users
  // The users whose id is one of `ids` or begins with one of `prefixes`; none when both are empty.
  static UserScope Of(std::vector<std::string> prefixes, std::vector<std::string> ids);
  static UserScope None() { return Of({}, {}); }

  bool is_all() const { return rule_ == nullptr; }
  // Ascending and distinct; both are empty when is_all().
  std::span<const std::string> prefixes() const;
  std::span<const std::string> ids() const;

  // Cost: O(prefixes + size of the id).
  bool Has(std::string_view user_id) const;
  // The row of a user that exists for the caller. Every look-up of a caller's user goes through it.
  std::optional<Row> Find(const IdIndex& users, std::string_view user_id) const;

  // Whether both have the same rule.
  friend bool operator==(const UserScope& a, const UserScope& b);
  template <class Hash>
  friend Hash AbslHashValue(Hash hash, const UserScope& scope) {
    return Hash::combine(std::move(hash), scope.is_all() ? 0 : scope.rule_->hash);
  }

 private:
  struct Rule {
    std::vector<std::string> prefixes;
    std::vector<std::string> ids;
    absl::flat_hash_set<std::string> id_set;
    std::size_t hash = 0;  // of prefixes and ids, which may be many
  };

  std::shared_ptr<const Rule> rule_;  // null for all users
};

// The users of a collection in one scope, and the items that they have seen most.
struct UserSubset {
  std::uint64_t user_count = 0;
  std::uint64_t pair_count = 0;  // of a user and an item that it has seen
  // As Profiles::most_seen, counted among these users and the visitors of the scope. Never null.
  std::shared_ptr<const std::vector<Row>> most_seen;
};

// The subsets of the scopes that were asked for last, within a budget of bytes. Belongs to a
// snapshot. Safe to call from many threads.
class UserSubsets {
 public:
  explicit UserSubsets(std::uint64_t bytes_max = kBytesMax) : bytes_max_(bytes_max) {}

  // The users of a scope.
  //   dataset  the same one in each call
  // Errors: those of `work`.
  // Cost: O(1) for all users and for a cached subset. Otherwise a look at the id of every user and
  // visitor, unless the scope has ids alone, and at every item that the scope's users have seen.
  absl::StatusOr<UserSubset> Of(const UserScope& scope,
                                const std::shared_ptr<const Dataset>& dataset,
                                base::LongWork& work);
  std::uint64_t bytes() const;

 private:
  static constexpr std::uint64_t kBytesMax = 32U << 20;  // eight lists of a million rows

  struct Entry {
    UserScope scope;
    UserSubset subset;
    std::uint64_t bytes = 0;
  };

  std::optional<UserSubset> Find(const UserScope& scope);
  void Insert(const UserScope& scope, const UserSubset& subset);
  void Drop(std::list<Entry>::iterator entry);

  const std::uint64_t bytes_max_;
  mutable std::mutex mutex_;  // guards the members below
  std::list<Entry> entries_;  // last used first
  absl::flat_hash_map<UserScope, std::list<Entry>::iterator> places_;
  std::uint64_t bytes_ = 0;
};

}  // namespace simile::data
