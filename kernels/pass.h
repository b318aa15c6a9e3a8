#pragma once

// The arguments that the kernels of one pass share: a batch of queries over the resident rows of a
// segment. Rows have two orders. fp16 rows are at *positions*, in a seeded shuffled order that
// makes sampled gates sound. fp32 rows are in the caller's order, and a *row* is an index in this
// order. row_of maps positions to rows. Nothing here allocates or waits.

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace simile::kernels {

using Key = unsigned long long;  // simile::RankKey, packed: greater is better, 0 is none

// One query. Cheap scores and gates are in units in which rows and queries have at most unit
// length: canonical score = cheap score * score_of_unit.
struct QueryTerms {
  const unsigned* mask;      // bit p % 32 of word p / 32: position p passes; null: all pass
  const unsigned* list;      // for canonical_scan: the rows that pass, distinct; null: use the mask
  const unsigned* excluded;  // rows that do not pass, ascending
  unsigned list_count;
  unsigned excluded_count;
  unsigned wanted;      // hits, at most the rows that pass; 0: no query in this slot
  unsigned rank;        // the gate is the rank-th best of the sample minus a margin
  float unit_of_query;  // a power of two that scales the query to at most unit length
  float score_of_unit;  // a power of two
  float reached;        // a score in units that at least `wanted` rows reach; replaces the sample's
                        // gate. kLowestScore: unknown
  unsigned second_rank;  // of a second gate among the groups of the first rows; 0: no second gate
  float threshold;       // hits with a lower canonical score are left out
};

// A position that reached the gate, with its cheap score.
struct alignas(8) Hit {
  unsigned position;
  float score;
};

// Whether an answer is proven, or why not. If not, canonical scores of all rows answer the query.
enum ProofFlag : unsigned {
  kPending = 0,  // no answer yet; the host writes it when it polls for an answer
  kProven = 1,
  kOverflow = 2,   // more hits than the capacity
  kTooFew = 3,     // fewer hits than wanted: the gate was too high
  kBelowGate = 4,  // a row below the gate may have a better score than the last hit
};
struct Proof {
  unsigned flag;
  unsigned hits;   // positions that reached the gate; may exceed the capacity
  unsigned kept;   // hits that were rescored
  unsigned found;  // hits that reach the threshold
};

// A hit of an answer. Same layout as simile::Hit, so that answers need no conversion.
struct alignas(8) AnswerHit {
  unsigned row;  // the caller's number
  float score;   // canonical, never -0
};

// Hits of a query that are listed for canonical scores.
struct alignas(16) Candidates {
  unsigned scored;  // the first rows of the list have their scores
  unsigned listed;
  float cut;  // hits below it are not listed yet
};

struct Pass {
  // The segment
  const float* rows;       // [row_count][stride] fp32
  const unsigned* row_of;  // [row_count]
  unsigned first_row;      // the caller's number of row 0
  unsigned row_count;
  unsigned stride;  // of fp32 rows, fp16 rows and queries: a multiple of 32, zeros after dim
  float bound;      // |cheap - canonical| of any row and query, in units
  bool hits_are_upper_bounds;  // no hit's canonical score is above its own; bound is 0
  // The queries
  const float* queries;     // [batch][stride]
  const QueryTerms* terms;  // [batch]
  unsigned batch;
  // Hits: positions that reached the gate
  float* gates;          // [batch]
  Hit* hits;             // [batch][capacity]
  unsigned* hit_counts;  // [batch]
  unsigned capacity;
  // Candidates: hits that can be among the best
  Candidates* candidates;  // [batch]
  unsigned* kept_rows;     // [batch][capacity]
  Key* keys;               // [batch][capacity]
  // The answer
  Proof* proofs;    // [batch]
  AnswerHit* best;  // [batch][best_stride], best first; the first `found` reach the threshold
  unsigned best_stride;
  bool host_polls;  // proofs and best are in host memory, and the host polls the flag of each proof
};

// An upper bound of |cheap score|, rounding included.
inline constexpr float kHighestScore = 1.0625F;
// A gate that all rows reach, because it is below every cheap score. It is only just below, because
// sums start at minus the gate, so a larger magnitude would widen the bound.
inline constexpr float kLowestScore = -1.125F;

}  // namespace simile::kernels
