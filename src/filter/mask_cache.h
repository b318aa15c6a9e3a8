#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <absl/container/flat_hash_map.h>
#include <absl/strings/string_view.h>

#include "simile/row_mask.h"

namespace simile::filter {

// The masks of the most recently used filters by canonical text, and of intersections by name
// (NamedRows), within a budget of bytes. Safe to call from many threads.
class MaskCache {
 public:
  explicit MaskCache(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Null when the mask is not cached.
  std::shared_ptr<const RowMask> Find(std::string_view text);
  // Caches the mask and evicts the least recently used ones. A mask beyond the budget is not
  // cached.
  void Insert(const std::string& text, std::shared_ptr<const RowMask> mask);

  std::uint64_t bytes() const;

 private:
  struct Entry {
    std::string text;
    std::shared_ptr<const RowMask> mask;
    std::uint64_t bytes = 0;
  };

  void Drop(std::list<Entry>::iterator entry);

  const std::uint64_t bytes_max_;
  mutable std::mutex mutex_;  // guards the members below
  std::list<Entry> entries_;  // last used first
  // By the text of the entry, which callers choose: its hash differs from process to process, so
  // that nobody can send texts of which all have the same.
  absl::flat_hash_map<absl::string_view, std::list<Entry>::iterator> places_;
  std::uint64_t bytes_ = 0;
};

}  // namespace simile::filter
