#include "base/stable_hash.h"

#include <algorithm>
#include <new>

#include <xxhash.h>

namespace simile::base {

void StableHash::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

StableHash::StableHash() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

std::uint64_t StableHash::Hash64(std::string_view bytes) {
  return XXH3_128bits(bytes.data(), bytes.size()).low64;
}

void StableHash::Add(std::string_view bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

StableHash::Digest StableHash::Digest128() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
  Digest digest;
  std::copy_n(canonical.digest, digest.size(), digest.begin());
  return digest;
}

std::uint64_t StableHash::Digest64() const { return XXH3_128bits_digest(state_.get()).low64; }

}  // namespace simile::base
