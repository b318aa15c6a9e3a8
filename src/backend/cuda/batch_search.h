#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/pass_runner.h"
#include "backend/gpu_options.h"

namespace simile::backend::cuda {

// The engine names on receipts.
struct StrategyNames {
  explicit StrategyNames(int capability);

  const std::string& Of(const KernelVariant& variant) const;

  std::vector<std::string> passes;  // "fp16-scan-sm90", in the order of KernelVariants()
  std::string gather;               // "gather-sm90"
  std::string canonical;            // "scan-sm90"
};

// The demands of queries on their pass. Benches plan with this function, too.
//   reach_max  the most hits that a query wants, including the rows that it excludes
PassDemand MakeDemand(const ResidentRows& rows, std::size_t queries, unsigned hits_max,
                      unsigned reach_max, bool int8_allowed);

// The strategy with which one query without a filter or exclusions begins.
//   workspace  any size: one query fits the smallest
const std::string& NameOfOneQuery(const CardTraits& card, const GpuTuning& tuning,
                                  const StrategyNames& names, const WorkspaceSize& workspace,
                                  const ResidentRows& rows);

// One batch against one segment: chooses a strategy for each query, answers unproven queries again,
// and writes the answers. Borrows everything.
class BatchSearch {
 public:
  //   engine  the owner of the runner's device; lent hits keep it alive
  BatchSearch(const CardTraits& card, const GpuTuning& tuning, const StrategyNames& names,
              PassRunner& runner, std::shared_ptr<const void> engine)
      : card_(card),
        tuning_(tuning),
        names_(names),
        runner_(runner),
        rows_(runner.rows()),
        engine_(std::move(engine)) {}

  // Throws DeviceError, std::bad_alloc.
  void Run(const SearchBatch& batch, SearchResult& result);

  // Starts a search that one pass answers, and does not wait for the device. Returns false for any
  // other search, or when no host blocks are free; then nothing was written or enqueued. Throws as
  // Run.
  bool Start(const SearchBatch& batch, SearchResult& result);
  // Waits for the search that was started, and completes it. Throws as Run.
  void Finish(Device& device);

 private:
  void Begin(const SearchBatch& batch, SearchResult& result);
  // Whether there are no masks, no zero vectors and no more excluded rows than one list holds.
  bool NeedsOnlyPasses() const;
  void Add(std::uint32_t index);
  const Filter* UseFilter(const RowMask& mask);
  unsigned ListShare(const RowMask& mask) const;
  // The excluded rows that pass the query's mask, in the segment's numbering.
  void ListExcluded(const QuerySpec& spec, std::vector<unsigned>& excluded) const;
  // The query's mask without the excluded rows, for queries whose list of excluded rows would
  // cost more than a mask.
  const RowMask& MaskWithout(const QuerySpec& spec, std::span<const unsigned> excluded);

  // Answers all queries added since the last call.
  void Flush();
  struct PlannedPass {
    PassPlan plan;
    std::span<DeviceQuery> queries;
  };
  std::optional<PassPlan> PlanFor(std::span<const DeviceQuery> queries, bool int8_allowed) const;
  static void SortByReach(std::vector<DeviceQuery>& queries);
  void RunPasses(std::vector<DeviceQuery>& queries, bool int8_allowed);
  std::optional<PlannedPass> FillNext(std::span<DeviceQuery>& left, bool int8_allowed);
  void Conclude(const PassPlan& plan, std::span<DeviceQuery> queries);
  // The list for a query whose pass proved nothing.
  std::vector<DeviceQuery>& NextAfter(const PassPlan& plan, std::size_t index, DeviceQuery& query);
  void RunCanonical(std::vector<DeviceQuery>& queries, const std::string& name);
  //   answer  copied, unless the runner lends the hits
  void Write(const DeviceQuery& query, std::span<const Hit> answer, const std::string& name);

  const CardTraits& card_;
  const GpuTuning& tuning_;
  const StrategyNames& names_;
  PassRunner& runner_;
  ResidentRows& rows_;
  const std::shared_ptr<const void> engine_;
  const SearchBatch* batch_ = nullptr;
  SearchResult* result_ = nullptr;
  std::optional<PassPlan> started_;  // of the search that was started

  // The queries added so far.
  std::vector<DeviceQuery> passes_;       // for a pass over all rows
  std::vector<DeviceQuery> int8_reruns_;  // for a pass whose gate `wanted` rows are known to reach
  std::vector<DeviceQuery> fp16_reruns_;  // from the int8 rows to the fp16 rows
  std::vector<DeviceQuery> gathers_;      // whose filter is a list of rows
  std::vector<DeviceQuery> canonical_;    // for canonical scores of all rows
  std::vector<unsigned> excluded_rows_;   // of all added queries
  std::deque<RowMask> masks_;             // made for this batch
  std::vector<std::pair<const RowMask*, const Filter*>> known_;  // filters in use, by mask
  std::vector<unsigned> excluded_;                               // of the query being added
};

}  // namespace simile::backend::cuda
