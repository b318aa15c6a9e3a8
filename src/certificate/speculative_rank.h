#pragma once

#include <cstddef>

namespace simile::certificate {

// The rank r such that the r-th best of the rows scanned so far lies below the true k-th best,
// except with probability 1e-6. Rows are stored shuffled, so those scanned are a random sample: the
// number of the k best among them is binomial with mean k * fraction, and a Poisson variable of
// that mean has the heavier tail. So r is the least number that such a variable reaches with
// probability 1e-6 or less, and at most k, which is certain. A wrong guess costs a rescan, never a
// wrong answer: the end of the search proves every answer.
//   fraction  share of the rows scanned, 0 .. 1
// Cost: O(r).
std::size_t SpeculativeRank(std::size_t k, double fraction);

}  // namespace simile::certificate
