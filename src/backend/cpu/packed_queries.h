#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cpu/int8_kernel.h"
#include "backend/cpu/packed_rows.h"
#include "certificate/score_bound.h"
#include "data/page_buffer.h"
#include "simile/matrix_view.h"

namespace simile::backend::cpu {

// The queries of a pass as the first stage reads them: rotated, a byte a dimension, in tiles of
// sixteen. Reused from pass to pass; only grows.
class PackedQueries {
 public:
  // What the first stage must know of a query.
  struct Query {
    certificate::QuantizedNorms norms;
    double scale = 0;           // of its codes
    double steps_per_unit = 0;  // 1 / scale
    double offset = 0;          // what the rows' bias adds to each sum
  };
  // What one thread needs to pack a query; only grows.
  struct Scratch {
    std::vector<float> rotated;
    std::vector<float> spare;
    std::vector<std::int8_t> codes;
  };

  // Makes room for query_count queries against these rows. Throws std::bad_alloc.
  void Reset(const PackedRows& rows, std::size_t query_count);
  // Makes room for packing with it. Throws std::bad_alloc.
  static void Reserve(const PackedRows& rows, Scratch& scratch);
  // Packs one query; different ones may be packed from different threads.
  //   values  [padded_dim]
  void Pack(const PackedRows& rows, std::size_t index, const float* values, std::size_t padded_dim,
            Scratch& scratch);

  const Query& query(std::size_t index) const { return queries_[index]; }
  // [tile][rotated_dim / 64][16][64], as BlockScan::queries; from a query of its tile on.
  const std::int8_t* codes(std::size_t first_query) const {
    return codes_.As<const std::int8_t>() + CodesAt(first_query);
  }

 private:
  std::size_t CodesAt(std::size_t query) const {
    return query / kTileQueries * kTileQueries * rotated_dim_ +
           query % kTileQueries * certificate::kCodeStep;
  }

  std::size_t rotated_dim_ = 0;
  std::vector<Query> queries_;
  data::PageBuffer codes_;
};

}  // namespace simile::backend::cpu
