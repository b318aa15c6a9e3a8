#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace simile::backend {

// The measurements that a card makes of its own passes while a collection is loaded, and the store
// that keeps them between loads. Speed depends on them, but no answer.

// How a pass turns its hits into answers (kernels/answers.h).
enum class FinishForm : std::uint8_t {
  kOneLaunch,        // a block for each query
  kSteps,            // many blocks share the canonical scores of one query
  kStepsInRowOrder,  // like kSteps; the scores of all queries start with the first rows
};
inline constexpr std::array kFinishForms{FinishForm::kOneLaunch, FinishForm::kSteps,
                                         FinishForm::kStepsInRowOrder};
// The name of the form in `simile tune` and in the tuning file.
constexpr std::string_view FinishText(FinishForm form) {
  switch (form) {
    case FinishForm::kOneLaunch:
      return "one launch";
    case FinishForm::kSteps:
      return "steps";
    case FinishForm::kStepsInRowOrder:
      break;
  }
  return "steps in row order";
}

// The pass for one class of batches.
struct GpuPassChoice {
  unsigned queries_max = 0;  // the class: at most this many queries
  unsigned hits_max = 0;     // and at most this many hits for each
  std::string variant;       // "int8_scan_kept"; empty when the rules' pass is the fastest
  FinishForm finish = FinishForm::kSteps;
  bool is_mapped = false;
  unsigned second_gate_share = 0;
  double tile_factor = 1;
  double seconds = 0;        // of the fastest pass
  double rules_seconds = 0;  // of the rules' pass

  friend bool operator==(const GpuPassChoice&, const GpuPassChoice&) = default;
};

struct GpuChoices {
  std::vector<GpuPassChoice> passes;
  unsigned gather_share = 0;      // as GpuTuning's; 0: not measured
  unsigned sufficient_batch = 0;  // as SegmentIndex's; 0: not measured

  friend bool operator==(const GpuChoices&, const GpuChoices&) = default;
};

// The key of the choices, in addition to the driver and the build.
struct GpuSegmentKey {
  std::string card;  // "NVIDIA H200"
  unsigned row_count =
      0;  // rounded up by at most an eighth, so that a reload with a few more rows is recognised
  unsigned stride = 0;
  bool has_int8 = false;

  friend bool operator==(const GpuSegmentKey&, const GpuSegmentKey&) = default;
};

// The measurements of one load.
struct MeasuredChoices {
  GpuSegmentKey key;
  GpuChoices choices;
};

// Keeps choices. Called by loads, from any thread, one call at a time.
class GpuChoiceStore {
 public:
  virtual ~GpuChoiceStore() = default;

  // Returns empty choices when nothing is known.
  virtual GpuChoices Read(const GpuSegmentKey& key) = 0;
  virtual void Write(const GpuSegmentKey& key, const GpuChoices& choices) = 0;
};

}  // namespace simile::backend
