#include "bench/gpu/step_log.h"

#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace simile::bench::gpu {

void StepLog::Add(const std::string& step, const std::string& shape, nlohmann::json figures) {
  fmt::print("{} {}:", step, shape);
  for (const auto& [name, value] : figures.items()) {
    if (value.is_number_float()) {
      fmt::print(" {}={:.4g}", name, value.get<double>());
    } else {
      fmt::print(" {}={}", name, value.dump());
    }
  }
  fmt::print("\n");
  std::fflush(stdout);
  figures["step"] = step;
  figures["shape"] = shape;
  lines_.push_back(std::move(figures));
}

}  // namespace simile::bench::gpu
