#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "backend/cuda/pass_plan.h"
#include "backend/gpu_choices.h"

namespace simile::backend::cuda {

// Batches that share a choice: at most queries_max queries, each for at most hits_max hits.
struct PassClass {
  unsigned queries_max = 0;
  unsigned hits_max = 0;
  unsigned hits_timed = 0;  // hits that each query of a trial wants
};
// All classes, the most frequent first. They are timed in this order.
std::span<const PassClass> PassClasses();

// The measurement of one class.
struct MeasuredPass {
  std::optional<PassChoice> choice;  // empty when the rules' pass is the fastest
  double seconds = 0;                // of the fastest pass
  double rules_seconds = 0;          // of the rules' pass
};

// The measurements of the passes over one segment. Immutable once the segment is loaded.
class PassChoices {
 public:
  PassChoices() : by_class_(PassClasses().size()) {}
  // Leaves out variants that this build does not know.
  explicit PassChoices(const GpuChoices& kept);
  GpuChoices ToKeep() const;

  // The choice for a batch; null when the rules decide. Lives as long as this object.
  const PassChoice* Find(unsigned queries, unsigned hits_max) const;
  // As GpuTuning::gather_share; 0: not measured.
  unsigned gather_share() const { return gather_share_; }
  void set_gather_share(unsigned share) { gather_share_ = share; }
  // As SegmentIndex::sufficient_batch, found by `simile tune`.
  unsigned sufficient_batch() const { return sufficient_batch_; }

  bool Has(std::size_t index) const { return by_class_[index].has_value(); }
  //   index  in PassClasses()
  void Set(std::size_t index, const MeasuredPass& measured) { by_class_[index] = measured; }

 private:
  std::vector<std::optional<MeasuredPass>> by_class_;  // [classes]
  unsigned gather_share_ = 0;
  unsigned sufficient_batch_ = 0;
};

// One pass on the device.
struct Trial {
  enum class End : std::uint8_t {
    kTimed,
    kUnproven,  // some query was not answered by the pass
    kStopped,   // no time is left, or a search waits
  };
  End end = End::kStopped;
  double seconds = 0;  // of the fastest of several runs, host to host
};

// The segment and card that choices are made for. Borrows everything.
struct ChoiceTask {
  const CardTraits& card;
  const GpuTuning& tuning;
  const WorkspaceSize& workspace;
  const SegmentSize& segment;
  // The demand of a trial's batch of this class, without a choice.
  std::function<PassDemand(const PassClass&)> demand;
  std::function<Trial(const PassPlan&, const PassClass&)> time;
  // Times a query whose filter passes one row in this many: with a list of rows, or in a pass with
  // a mask.
  std::function<Trial(unsigned one_row_in, bool as_list)> time_filtered;
};

// Measures the classes that were not measured yet, until a trial is stopped. Times each variant,
// then other forms of the variants that are nearly as fast as the fastest. Cost: 10 to 30 trials a
// class.
void MeasureChoices(const ChoiceTask& task, PassChoices& choices);

}  // namespace simile::backend::cuda
