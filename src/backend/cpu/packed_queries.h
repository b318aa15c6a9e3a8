#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cpu/int8_kernel.h"
#include "backend/cpu/packed_rows.h"
#include "base/memory_pages.h"
#include "certificate/score_bound.h"

namespace simile::backend::cpu {

// The queries of a pass as the first stage reads them: rotated, a byte a dimension, in tiles of
// sixteen. Passes reuse it; it only grows.
class PackedQueries {
 public:
  // The figures of a query that the first stage needs.
  struct Query {
    certificate::QuantizedNorms norms;
    double scale = 0;           // of its codes
    double steps_per_unit = 0;  // 1 / scale
    double offset = 0;          // what the bias of row bytes adds to each sum
  };
  // One thread's buffers to pack a query with; they only grow.
  struct Scratch {
    std::vector<float> rotated;
    std::vector<float> spare;
    std::vector<std::int8_t> codes;
  };

  // Allocates for query_count queries against these rows. Throws std::bad_alloc.
  //   four_columns_max  of the kernel that will read them
  void Reset(const PackedRows& rows, std::int32_t four_columns_max, std::size_t query_count);
  // Allocates the scratch for packing. Throws std::bad_alloc.
  static void Reserve(const PackedRows& rows, Scratch& scratch);
  // Packs one query; different ones may be packed from different threads.
  //   values  [padded_dim]
  void Pack(const PackedRows& rows, std::size_t index, const float* values, std::size_t padded_dim,
            Scratch& scratch);

  const Query& query(std::size_t index) const { return queries_[index]; }
  // BlockScan::queries from this query on: [tile][rotated_dim / 64][16][64].
  const std::int8_t* codes(std::size_t first_query) const {
    return codes_.As<const std::int8_t>() + CodesAt(first_query);
  }

 private:
  std::size_t CodesAt(std::size_t query) const {
    return query / kTileQueries * kTileQueries * rotated_dim_ +
           query % kTileQueries * certificate::kCodeStep;
  }

  std::size_t rotated_dim_ = 0;
  std::int32_t four_columns_max_ = 0;
  std::vector<Query> queries_;
  base::PageBuffer codes_;
};

}  // namespace simile::backend::cpu
