#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/pass_runner.h"
#include "backend/gpu_options.h"

namespace simile::backend::cuda {

// How an answer names the road that it came.
struct RoadNames {
  explicit RoadNames(int capability);

  std::string row_scan;   // "fp16-scan-sm90"
  std::string gemm;       // "fp16-gemm-sm90"
  std::string gather;     // "gather-sm90"
  std::string canonical;  // "scan-sm90"
};

// One batch against one segment: sends each query down its road, redoes what could not be proven,
// and writes the answers. Borrows everything.
class BatchSearch {
 public:
  BatchSearch(const CardTraits& card, const GpuTuning& tuning, const RoadNames& names,
              PassRunner& runner)
      : card_(card), tuning_(tuning), names_(names), runner_(runner), rows_(runner.rows()) {}

  // Throws DeviceError, std::bad_alloc.
  void Run(const SearchBatch& batch, SearchResult& result);

 private:
  void Add(std::uint32_t query);
  const Filter* FilterOf(const RowMask& mask);
  unsigned ListShare(const RowMask& mask) const;
  // The rows that the query leaves out and its mask would let pass, as the segment numbers them.
  void ListExcluded(const QuerySpec& spec, std::vector<unsigned>& excluded) const;
  // A mask without them, for queries that leave out so many that a list would cost more.
  const RowMask& MaskWithout(const QuerySpec& spec, std::span<const unsigned> excluded);

  // Answers all that has been added since the last time.
  void Flush();
  void RunPasses();
  void Conclude(const PassPlan& plan, std::span<Ask> asks);
  void RunCanonical(std::vector<Ask>& asks, const std::string& name);
  void Write(const Ask& ask, std::span<const kernels::Key> answer, const std::string& name);

  const CardTraits& card_;
  const GpuTuning& tuning_;
  const RoadNames& names_;
  PassRunner& runner_;
  ResidentRows& rows_;
  const SearchBatch* batch_ = nullptr;
  SearchResult* result_ = nullptr;

  // What has been added.
  std::vector<Ask> passes_;              // to be found by a pass over the fp16 rows
  std::vector<Ask> gathers_;             // of which a filter lists the rows
  std::vector<Ask> canonical_;           // from all canonical scores
  std::vector<unsigned> excluded_rows_;  // of all of them
  std::deque<RowMask> masks_;            // made for this batch
  std::vector<std::pair<const RowMask*, const Filter*>> known_;  // filters in use, by their masks
  std::vector<unsigned> excluded_;                               // of the query that is being added
};

}  // namespace simile::backend::cuda
