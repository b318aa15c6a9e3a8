#pragma once

#include <vector>

#include "backend/cuda/pass_choices.h"
#include "backend/cuda/pass_runner.h"
#include "simile/clock.h"

namespace simile::backend::cuda {

// Times passes over a segment while it is loaded, with its own rows as queries: a query's score with
// itself is as high as scores become, as for a search of similar items. Borrows everything.
class PassTimer {
 public:
  // Throws std::bad_alloc.
  PassTimer(Device& device, ResidentRows& rows, const Clock& clock);

  // Runs one pass for so many queries. Throws DeviceError.
  // REQUIRES: queries <= plan.slots; no filter of the segment is in use.
  Trial Time(Workspace& workspace, const PassPlan& plan, unsigned queries, unsigned hits);

  // Answers one query by the rows that a filter passes, one in so many: from canonical scores of a
  // list of them, or by a pass with a mask. Throws DeviceError.
  Trial TimeFiltered(Workspace& workspace, const GpuTuning& tuning, unsigned one_row_in,
                     bool as_list);

 private:
  template <class Run>
  double Fastest(Run run) const;

  Device& device_;
  ResidentRows& rows_;
  const Clock& clock_;
  // The rows that are queries, as batches of all of the segment's rows name them.
  std::vector<DeviceQuery> queries_;
  std::vector<QuerySpec> specs_;  // [rows up to the last of them]
};

}  // namespace simile::backend::cuda
