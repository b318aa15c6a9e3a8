#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/cuda/resident_rows.h"
#include "backend/cuda/workspace.h"
#include "simile/hits.h"
#include "simile/query.h"

namespace simile::backend::cuda {

// One query of a batch, resolved for the device.
struct DeviceQuery {
  std::uint32_t index = 0;           // in the batch
  const Filter* filter = nullptr;    // null: every row passes
  unsigned wanted = 0;               // hits, at least 1, at most the rows that pass
  std::uint32_t first_excluded = 0;  // in the list of the pass
  std::uint32_t excluded_count = 0;  // excluded rows that pass the filter
  // A score in units that `wanted` rows are known to reach, from a pass whose answer was not
  // proven.
  float reached = kernels::kLowestScore;
  QueryCost cost;  // of all passes so far

  unsigned reach() const { return wanted + excluded_count; }
};

// Runs the passes of one search on the device, one at a time, and fills the next pass meanwhile. A
// pass of another search may be on the device, too. Borrows everything.
class PassRunner {
 public:
  //   device_time  the time of each pass is added here, measured by events before and after the
  //                pass; null: not measured
  PassRunner(Device& device, Workspace& workspace, ResidentRows& rows,
             DeviceTime* device_time = nullptr)
      : device_(device), workspace_(workspace), rows_(rows), device_time_(device_time) {}

  Workspace& workspace() const { return workspace_; }
  ResidentRows& rows() const { return rows_; }

  // All methods below throw DeviceError.

  // Uploads the excluded rows of the queries of the next passes: their lists one after the other,
  // each ascending. Waits for the stream if it has work.
  void UploadExcluded(std::span<const unsigned> rows);
  // As UploadExcluded, for the pass that was filled: uses its query block and waits for nothing.
  // Returns false, and does nothing, when the block has no space left.
  bool UploadExcludedOfNext(std::span<const unsigned> rows);

  // One read of the rows, in three steps. The next pass may be filled between Start and Await of
  // this one, if a query block is free. Answers stay valid from Await until the next Fill
  // or RunCanonical.
  void Fill(const PassPlan& plan, const SearchBatch& batch, std::span<const DeviceQuery> queries);
  bool CanFill() const { return workspace_.free_query_blocks() > 0; }
  //   marks_end  Await waits for this pass alone, not for later work of other searches
  void Start(bool marks_end = false);
  void Await();
  bool HasEnded() const;  // REQUIRES: marks_end
  // Fill, Start, Await.
  void Run(const PassPlan& plan, const SearchBatch& batch, std::span<const DeviceQuery> queries) {
    Fill(plan, batch, queries);
    Start();
    Await();
  }

  // Enqueues a pass for the queries of the last Run, which are on the device, and does not wait.
  // The answers stay on the device.
  void EnqueuePass(const PassPlan& plan);
  // For benches: enqueues the work of the last Run again, from the query block on the host to the
  // answer block on the host. Does not wait.
  void EnqueueAgain() { Enqueue(answered_); }

  // Answers by canonical scores alone, of the rows that filters list or of all rows.
  // REQUIRES: at most CanonicalSlots(queries) queries.
  void RunCanonical(const SearchBatch& batch, std::span<const DeviceQuery> queries);
  std::size_t CanonicalSlots(std::span<const DeviceQuery> queries) const;

  // The answer to queries[index] of the last call: its hits that reach the threshold, best first.
  // ProofOf says after Run whether the answer is proven.
  std::span<const Hit> Answer(std::size_t index) const;
  const kernels::Proof& ProofOf(std::size_t index) const;
  // The score of the answer's last hit, in units. REQUIRES: the wanted number of hits was found,
  // regardless of the threshold.
  float FindLastScore(std::size_t index) const;
  // Whether these answers stay valid as long as their block is held.
  bool lends_answers() const { return answered_.answers.index != 0; }
  const std::shared_ptr<const PinnedBlock>& answer_block() const { return answered_.answers.block; }

  // SegmentIndex::Score, for rows of the segment.
  void Score(MatrixView queries, std::span<const Row> rows, std::span<float> scores);

 private:
  // A pass whose query block is filled.
  struct FilledPass {
    PassPlan plan;
    HeldBlock queries;
    HeldBlock answers;
    PassGraph* graph = nullptr;  // in the segment's cache, until it is started
    bool marks_end = false;
  };

  // The size of a canonical scan.
  struct CanonicalSize {
    unsigned places = 0;  // the longest list, or all positions
    unsigned wanted = 0;  // the most hits that a query wants
  };

  // The arguments of a pass and of its scan, with answers on the device.
  kernels::Pass MakePass(const PassPlan& plan) const;
  kernels::RowScanArguments ScanArguments(const PassPlan& plan, const kernels::Pass& pass) const;
  void WriteTerms(const DeviceQuery& query, float threshold, double unit, const GateRanks& ranks,
                  kernels::QueryTerms& terms) const;
  //   filled  the blocks to fill; its graph is null for canonical scores
  void FillQueries(const SearchBatch& batch, std::span<const DeviceQuery> queries,
                   std::size_t slots, const FilledPass& filled) const;
  static GateRanks FindRanks(const FilledPass& filled, unsigned reach);
  kernels::Pass PassOver(unsigned slots, unsigned capacity, unsigned best_stride) const;
  CanonicalSize MeasureQueries(std::span<const DeviceQuery> queries) const;
  std::size_t RowsOfWait() const;

  // Puts the running pass into the stream, as a graph if its shape has run before.
  void Launch();
  void Enqueue(const FilledPass& filled);
  // Enqueues work, between two events if its time is asked for.
  //   flags  of cudaEventRecordWithFlags
  template <class Work>
  void EnqueueTimed(unsigned flags, Work work);
  // Adds the time of work by EnqueueTimed. Call when the work is done.
  void AddDeviceTime();
  // REQUIRES: the query block is filled. Waits between parts of long work.
  void EnqueueCanonical(const FilledPass& filled, const kernels::Pass& pass,
                        const CanonicalSize& size);
  void EnqueueScan(const PassPlan& plan, const kernels::Pass& pass);
  void EnqueueGemm(const PassPlan& plan, const kernels::Pass& pass);
  void EnqueueFinish(const PassPlan& plan, const kernels::Pass& pass);
  void EnqueueTiles(const PassPlan& plan, const kernels::Pass& pass);
  // The scores of the queries in the device's block: [query_count][rows], on the host.
  const float* ScoreRows(std::size_t query_count, std::span<const Row> rows);
  bool AllAnswered() const;
  // The proofs of the pass on the device, which are at the begin of its answer block.
  kernels::Proof* RunningProofs() const;
  const Hit* HitsOf(std::size_t index) const;
  void CopyIn(const PinnedBlock& queries, std::size_t bytes);
  void CopyOut(const PinnedBlock& answers, std::size_t bytes);

  Device& device_;
  Workspace& workspace_;
  ResidentRows& rows_;
  DeviceTime* const device_time_;
  FilledPass next_;      // filled, not started
  FilledPass running_;   // on the device
  FilledPass answered_;  // its answers are valid
  std::size_t answer_slots_ = 0;
  std::size_t answer_stride_ = 0;
};

}  // namespace simile::backend::cuda
