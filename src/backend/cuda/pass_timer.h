#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "backend/cuda/pass_choices.h"
#include "backend/cuda/pass_runner.h"
#include "simile/clock.h"

namespace simile::backend::cuda {

// Times passes over a segment while it is loaded, with the segment's rows as queries. A row's score
// with itself is the highest there is, as in searches for similar items. Borrows everything.
class PassTimer {
 public:
  //   must_stop  asked after each run of a pass
  // Throws std::bad_alloc.
  PassTimer(Device& device, ResidentRows& rows, const Clock& clock,
            std::function<bool()> must_stop);

  // Times one pass for the first `queries` of its queries. Throws DeviceError.
  // REQUIRES: queries <= plan.slots; no filter of the segment is in use.
  Trial Time(Workspace& workspace, const PassPlan& plan, unsigned queries, unsigned hits);

  // Times one query with a filter that one row in one_row_in passes: by canonical scores of a list
  // of these rows, or by a pass with a mask. kUnproven also where no such list is possible, or its
  // rows are on the host. Throws DeviceError.
  Trial TimeFiltered(Workspace& workspace, const GpuTuning& tuning, unsigned one_row_in,
                     bool as_list);

 private:
  // Runs a pass some times. Nothing where it must stop before it was timed.
  template <class Run>
  std::optional<double> Fastest(Run run) const;

  Device& device_;
  ResidentRows& rows_;
  const Clock& clock_;
  const std::function<bool()> must_stop_;
  // The rows that are queries, as a batch of all of the segment's rows names them.
  std::vector<DeviceQuery> queries_;
  std::vector<QuerySpec> specs_;  // [rows up to the last of them]
};

}  // namespace simile::backend::cuda
