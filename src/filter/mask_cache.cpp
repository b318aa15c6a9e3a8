#include "filter/mask_cache.h"

#include <utility>

#include <absl/strings/string_view.h>

namespace simile::filter {

std::shared_ptr<const RowMask> MaskCache::Find(std::string_view text) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(absl::string_view(text.data(), text.size()));
  if (found == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->mask;
}

void MaskCache::Insert(const std::string& text, std::shared_ptr<const RowMask> mask) {
  const std::uint64_t bytes = mask->bytes() + 2 * text.size() + sizeof(Entry);
  if (bytes > bytes_max_) return;
  const std::lock_guard lock(mutex_);
  // Two threads may have evaluated the same filter.
  if (const auto found = places_.find(text); found != places_.end()) Drop(found->second);
  while (bytes_ + bytes > bytes_max_) Drop(std::prev(entries_.end()));
  entries_.push_front({text, std::move(mask), bytes});
  bytes_ += bytes;  // before emplace, which may throw: the entry is then evicted in its turn
  places_.emplace(text, entries_.begin());
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

}  // namespace simile::filter
