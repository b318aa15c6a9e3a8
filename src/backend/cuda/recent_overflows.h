#pragma once

#include <cstddef>

namespace simile::backend::cuda {

// Where more than one query in 64 overflows, the segment needs another way. Among random directions
// one in a million does.
inline constexpr std::size_t kOverflowShare = 64;

// Whether too large a share of a segment's last few thousand queries overflowed in the int8 scan.
// Older ones fade, so that neither a long good time nor a burst decides for millions of queries.
class RecentOverflows {
 public:
  // Queries of an int8 scan, or of what answers in its place while there are too many.
  void Count(std::size_t queries, std::size_t overflows) {
    constexpr std::size_t kQueriesMax = 4'096;
    queries_ += queries;
    overflows_ += overflows;
    for (; queries_ > kQueriesMax; queries_ /= 2) overflows_ /= 2;
  }
  bool too_many() const {
    constexpr std::size_t kFew = 8;  // the first few say little of a collection
    return overflows_ > kFew + queries_ / kOverflowShare;
  }

 private:
  std::size_t queries_ = 0, overflows_ = 0;
};

}  // namespace simile::backend::cuda
