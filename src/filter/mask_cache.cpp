#include "filter/mask_cache.h"

#include <iterator>
#include <utility>

namespace simile::filter {

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
  std::list<Entry> entry;  // complete before it is added: what follows may have no memory
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

}  // namespace simile::filter
