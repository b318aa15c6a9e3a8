#pragma once

// What the kernels of one pass share: a batch of queries over the resident rows of a segment.
// Rows have two orders. Halves lie at *positions*, in the seeded shuffled order that makes sampled
// gates sound; fp32 rows lie in the caller's order, and a *row* is a number in it. row_of maps the
// one to the other. Nothing here allocates, waits or knows more of CUDA than its types.

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace simile::kernels {

using Key = unsigned long long;  // simile::RankKey, packed: greater is better, 0 is none

// What is asked of one query. Cheap scores and gates are in units in which rows and queries have at
// most unit length: canonical score = cheap score * score_of_unit.
struct QueryTerms {
  const unsigned* mask;  // bit p % 32 of word p / 32: position p may answer; null: all may
  const unsigned* list;  // for canonical_scan: the rows that may, distinct; null: as the mask says
  const unsigned* excluded;  // rows that may not, ascending
  unsigned list_count;
  unsigned excluded_count;
  unsigned wanted;      // hits, at most as many as pass; 0: there is no query in this slot
  unsigned rank;        // the gate is the rank-th best of the sample, less a margin
  float unit_of_query;  // a power of two: the query times it has at most unit length
  float score_of_unit;  // a power of two
};

// A position that reached the gate, with its cheap score.
struct alignas(8) Hit {
  unsigned position;
  float score;
};

// Why an answer cannot be trusted and the query has to be answered from all canonical scores.
enum VerdictFlag : unsigned {
  kProven = 0,
  kOverflow = 1,   // more hits than there is room for
  kTooFew = 2,     // fewer hits than wanted: the gate was too high
  kBelowGate = 3,  // the last hit does not lie above all that was left out
};
struct Verdict {
  unsigned flag;
  unsigned hits;  // that reached the gate; may exceed the capacity
  unsigned kept;  // of them, given a canonical score
};

struct Pass {
  // The segment
  const float* rows;       // [row_count][stride] fp32
  const unsigned* row_of;  // [row_count]
  unsigned row_count;
  unsigned stride;  // of fp32 rows, halves and queries alike: a multiple of 32, zeros behind dim
  float bound;      // |cheap - canonical| of any row and query, in units
  // The queries
  const float* queries;     // [batch][stride]
  const QueryTerms* terms;  // [batch]
  unsigned batch;
  // What reached the gate
  float* gates;          // [batch]
  Hit* hits;             // [batch][capacity]
  unsigned* hit_counts;  // [batch]
  unsigned capacity;
  // What can be among the best
  unsigned* kept_rows;  // [batch][capacity]
  Key* keys;            // [batch][capacity]
  // The answer
  Verdict* verdicts;  // [batch]
  Key* best;          // [batch][best_stride], best first, 0 behind the last
  unsigned best_stride;
};

// No cheap score lies beyond this, rounding included.
inline constexpr float kHighestScore = 1.0625F;
// Below every cheap score: the gate that lets everything pass. Not far below, because a gate's
// magnitude joins the sums that start from it and so the bound.
inline constexpr float kLowestScore = -1.125F;

}  // namespace simile::kernels
