#pragma once

#include <cstddef>
#include <span>

namespace simile::certificate {

// Scores of a row with several examples, from its canonical score x_i with the i-th example, whose
// weight is w_i. Every operation rounds once, in IEEE arithmetic and in a fixed order, so that all
// machines return the same bits. The positive examples come first.

// x / (1 + |x|), mapped from -1..1 to 0..1, computed in double and rounded once. Monotonic: up to
// |x| = 2^53 the denominator is exact, or its error is far below the distance between floats.
// Beyond 2^53 the denominator is |x| itself.
float Squash(float x);

// With p the greatest w_i x_i of the positive examples and n the greatest of the negative examples:
// Squash(p) when p > n, else -Squash(n). n is -infinity without negatives, p without positives.
// Products are rounded to float.
//   similarities, weights  [examples]
// REQUIRES: at least one example; weights are positive and finite.
float BestScore(std::span<const float> similarities, std::span<const float> weights,
                std::size_t positive_count);

// An upper bound on the BestScore of a row whose similarity with each example is at most that
// example's ceiling. (Fagin, Lotem and Naor, Optimal Aggregation Algorithms for Middleware, 2001,
// section 4: the threshold of sorted lists.)
//   ceilings, weights  [positive examples], at least one
float BestScoreCeiling(std::span<const float> ceilings, std::span<const float> weights);
// The same with negative examples alone: the row's similarity with each is at least that example's
// floor.
//   floors, weights  [negative examples]
float BestScoreCeilingOfFloors(std::span<const float> floors, std::span<const float> weights);

// The sum of w_i x_i over the positive examples minus the sum over the negative examples, in their
// order, in double (where the products are exact), rounded once to float.
float SumScores(std::span<const float> similarities, std::span<const float> weights,
                std::size_t positive_count);

// A sum of scores is a score with the sum: sum_i w_i (e_i . r) = c . r with c = sum_i w_i e_i. So
// the rows nearest to the direction of c are the candidates, and this bounds their sums.
struct SumBound {
  double scale = 0;  // a row's sum is at most scale * (its score with the direction) + slack
  double slack = 0;
};

// Computes the direction and the bound.
//   examples      [examples, padded_dim]
//   direction     [padded_dim]  written: c / |c| rounded to float; padding stays 0
//   longest_row   no row is longer
// Returns scale 0 when c is so short that it has no meaningful direction.
// Derivation: docs/design/recommendation.md.
SumBound BoundSums(const float* examples, std::size_t padded_dim, std::size_t dim,
                   std::span<const float> weights, std::size_t positive_count, double longest_row,
                   float* direction);

}  // namespace simile::certificate
