#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/status/status.h>

#include "engine/query/existing_items.h"
#include "engine/query/other_items.h"
#include "engine/query/query_request.h"

namespace simile::engine {

// The ids of a request that a collection does not have, for a message: the first 20 different ids,
// and the number of further ids.
class UnknownIds {
 public:
  enum class Kind : std::uint8_t { kItem, kUser, kOtherItem };

  //   id  of kOtherItem: "cvs/anna-7"
  void Add(Kind kind, std::string_view id);
  std::size_t count() const { return seen_.size(); }  // of different ids

  // `items "zz", "yy", user "u", item of another collection "cvs/anna-7", and 37 more`
  std::string KindsText() const;
  // `3 ids are not in films: items "zz", "yy", user "u"`, or `3 ids are not in their collections:
  // ...` when an item of another collection is among the ids.
  std::string Text(std::string_view collection) const;

  static constexpr std::size_t kNamedMax = 20;

 private:
  std::set<std::pair<Kind, std::string>> seen_;
  std::array<std::vector<std::string_view>, 3> named_;  // of seen_, by kind, in request order
  std::size_t named_count_ = 0;
};

// `"zz", "yy", and 37 more`.
//   first  the ids that are named, of `count` different ones
std::string NamedIdsText(std::span<const std::string_view> first, std::uint64_t count);

// The error of a call, or of one query, that names all unknown ids. With a single unknown id this
// is `first`; otherwise it has the reason and field of `first`.
// Returns work's error instead if it ended before all ids were looked up.
//   first     ITEM_NOT_FOUND or USER_NOT_FOUND of one of the requests
//   requests  all of the call, or the one query
absl::Status NameAllUnknown(const absl::Status& first, std::span<const QueryRequest> requests,
                            const ExistingItems& items, OtherItems& others,
                            std::string_view collection);

// The number of unknown ids for which a partial call is offered the nearest known id, which takes a
// look at every id. At least one; all of them in a collection of some thousand ids.
//   others  whose items the call's queries name
std::uint64_t OffersMax(const engine::Snapshot& snapshot, const OtherCollections& others);

}  // namespace simile::engine
