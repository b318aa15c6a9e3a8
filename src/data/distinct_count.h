#pragma once

#include <cstdint>

namespace simile::data {

// How often values occur in a sample.
struct DistinctSample {
  std::uint64_t values = 0;            // all of them
  std::uint64_t distinct = 0;          // different ones
  std::uint64_t once = 0;              // different ones that occur once
  std::uint64_t twice = 0;             // ... twice
  std::uint64_t distinct_in_half = 0;  // different ones in the first half of the sample
};

// The different values among `times` as many as in the sample, times >= 1. The geometric mean of
// two estimates, because real fields lie between their models: Chao's, which takes the values that
// are missing from the sample to be as rare as those that it has once (a least estimate: A. Chao
// and L. Jost, Ecology 93, 2012), and Heaps' law, by which each doubling adds the same share (too
// many once a vocabulary is exhausted). They agree for values that are all different, or all known.
double DistinctCount(const DistinctSample& sample, double times);

}  // namespace simile::data
