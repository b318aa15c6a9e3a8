#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cpu/calibration.h"
#include "backend/cpu/gather.h"
#include "backend/cpu/int8_pass.h"
#include "backend/cpu/packed_rows.h"
#include "backend/cpu/scan_search.h"
#include "backend/cpu/thread_pool.h"
#include "simile/clock.h"
#include "simile/query.h"
#include "simile/row_mask.h"

namespace simile::backend::cpu {

// Measures the engine's own strategies over a collection of synthetic vectors that is the same on
// every machine. Made for one calibration, used by one thread.
class MachineProbe final : public CalibrationProbe {
 public:
  // Draws and packs the vectors. Throws std::bad_alloc.
  explicit MachineProbe(const Int8Options& options);

  std::vector<TimePair> LargeAndSmall(std::size_t batch) override;
  std::vector<TimePair> GatherAndPass(std::size_t batch) override;
  std::vector<TimePair> ScanAndPass(std::size_t row_count) override;

 private:
  void DrawRows();
  std::unique_ptr<const PackedRows> Pack(std::size_t row_count);
  SegmentRows RowsUpTo(std::size_t row_count) const;

  // Selects other queries each time, so that branch prediction does not learn them.
  void SelectQueries(std::size_t batch, const RowMask* mask);
  void Pass(const SegmentRows& rows, const PackedRows& packed, const Int8Kernel& kernel);
  void Scan(const SegmentRows& rows);
  void GatherRows(const SegmentRows& rows);

  // Runs both in turn until there are enough pairs or this measurement's share of the time is
  // spent.
  template <class First, class Second>
  std::vector<TimePair> TimeInTurn(std::size_t batch, const RowMask* mask, First first,
                                   Second second);
  template <class Work>
  double Time(Work work) const;

  const Int8Options options_;
  const RealClock clock_;
  const Clock::TimePoint end_;
  ThreadPool pool_;
  ScanSearch scan_;
  Gather gather_;
  Int8Memory memory_;
  const std::unique_ptr<float[]> rows_;  // [rows + queries, dim]
  RowMask mask_;
  std::unique_ptr<const PackedRows> packed_;

  std::size_t next_query_ = 0;
  std::vector<QuerySpec> specs_;
  std::vector<std::uint32_t> queries_;
  SearchBatch batch_;
  SearchResult result_;
};

}  // namespace simile::backend::cpu
