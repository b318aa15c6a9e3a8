#pragma once

#include <string>

#include "simile/v1/admin.pb.h"

namespace simile::cli {

// The value of a metric's label; empty without it.
inline std::string LabelOf(const v1::MetricValue& metric, const char* label) {
  const auto found = metric.labels().find(label);
  return found == metric.labels().end() ? "" : found->second;
}

}  // namespace simile::cli
