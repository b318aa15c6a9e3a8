#pragma once

#include <cstddef>
#include <span>

namespace simile::certificate {

// Scores that several vectors make together, out of a row's canonical score with each: x_i with the
// i-th example, w_i its weight. Every operation is one rounding of IEEE arithmetic in a fixed
// order, so that all machines return the same bits. The positive examples come first.

// x / (1 + |x|), moved from -1..1 to 0..1: worked out in double and rounded once. It never falls
// while x rises: up to |x| = 2^53 the denominator is exact or its error far below the distance of
// two floats, beyond that it is |x| itself.
float Squash(float x);

// With p the greatest w_i x_i of the positive examples and n that of the negative ones:
// Squash(p) when p > n, else -Squash(n). Without negatives n is below every number, without
// positives p is. Products are rounded to float.
//   similarities, weights  [examples]
// REQUIRES: at least one example; weights are positive and finite.
float BestScore(std::span<const float> similarities, std::span<const float> weights,
                std::size_t positive_count);

// What no BestScore exceeds of a row whose similarity with each of some examples is at most that
// example's ceiling. (Fagin, Lotem and Naor, Optimal Aggregation Algorithms for Middleware, 2001,
// section 4: the threshold of sorted lists.)
//   ceilings, weights  [positive examples], at least one
float BestScoreCeiling(std::span<const float> ceilings, std::span<const float> weights);
// The same of a row when there are negative examples alone: its similarity with each is at least
// the floor.
//   floors, weights  [negative examples]
float BestScoreCeilingOfFloors(std::span<const float> floors, std::span<const float> weights);

// The sum of w_i x_i over the positive examples less that over the negative ones, in their order,
// in double (where the products are exact), rounded once to float.
float SumScores(std::span<const float> similarities, std::span<const float> weights,
                std::size_t positive_count);

// Sums of scores are scores with the sum: sum_i w_i (e_i . r) = c . r with c = sum_i w_i e_i. So
// the rows nearest to the direction of c are the candidates, and this says what a sum may come to.
struct SumBound {
  double scale = 0;  // a row's sum is at most scale * (its score with the direction) + slack
  double slack = 0;
};

// Works out the direction and the bound.
//   examples      [examples, padded_dim]
//   direction     [padded_dim]  written: c / |c| rounded to float; padding stays 0
//   longest_row   no row is longer
// Returns scale 0 when c all but vanishes: then no direction tells anything.
// Derivation: docs/design/recommendation.md.
SumBound BoundSums(const float* examples, std::size_t padded_dim, std::size_t dim,
                   std::span<const float> weights, std::size_t positive_count, double longest_row,
                   float* direction);

}  // namespace simile::certificate
