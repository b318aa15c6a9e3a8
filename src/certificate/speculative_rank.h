#pragma once

#include <cstddef>

namespace simile::certificate {

// Rows are stored shuffled, so those scanned so far are a random share of all. The rank r such that
// the r-th best of them lies below the true k-th best but for one chance in a million: of the k
// best rows a share of `fraction` is expected among those seen, and how many are follows a Poisson
// law at worst (a binomial one with the same mean has the lighter tail). So r is the least number
// that a Poisson variable of mean k * fraction reaches with probability 1e-6 or less, and at most
// k, where no chance is left. The guess costs a rescan when it is wrong, never a wrong answer: the
// verdict at the end of a search is proven.
//   fraction  share of the rows seen, 0 .. 1
// Cost: O(r).
std::size_t SpeculativeRank(std::size_t k, double fraction);

}  // namespace simile::certificate
