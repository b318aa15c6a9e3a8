#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "simile/matrix_view.h"
#include "simile/row_mask.h"

namespace simile {

// How scores are formed. Cosine collections and queries are stored at unit length, so that both
// metrics are one dot product by the time a backend sees them.
enum class Metric : std::uint8_t { kCosine, kDot };

// What one query of a batch asks for. Queries of one batch may differ in every field.
struct QuerySpec {
  // Hits wanted, 1 .. limits.k_max. Fewer come back when fewer rows pass.
  std::uint32_t k = 10;
  // Rows that may be returned; nullptr lets every row pass. Borrowed for the call.
  const RowMask* mask = nullptr;
  // Rows that must not be returned, ascending and distinct. Borrowed for the call.
  std::span<const Row> excluded_rows;
  // Rows whose canonical score is below the threshold are not returned.
  float score_threshold = -std::numeric_limits<float>::infinity();
};

// How long a device worked, by its own clock. Includes copies to and from the device; excludes
// waits of the host. Adds up over the calls that it is passed to. A backend on the host adds
// nothing.
struct DeviceTime {
  void Add(double us) {
    measured = true;
    microseconds += us;
  }

  bool measured = false;
  double microseconds = 0;
};

// One batch against one segment. Everything is borrowed for the call.
struct SearchBatch {
  MatrixView queries;                // [batch, dim] fp32, unit length for cosine
  std::span<const QuerySpec> specs;  // [batch]
  // The device's time is added here. Null when nobody asks for it, because measuring costs the host
  // some microseconds a pass.
  DeviceTime* device_time = nullptr;
};

}  // namespace simile
