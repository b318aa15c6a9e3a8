#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace simile::bench::gpu {

// The measured figures, line by line: printed at once, and collected for the JSON.
// gpu_decisions.py, which can be tested without a card, draws the conclusions.
class StepLog {
 public:
  //   figures  an object; names end in their unit
  void Add(const std::string& step, const std::string& shape, nlohmann::json figures);

  const nlohmann::json& lines() const { return lines_; }

 private:
  nlohmann::json lines_ = nlohmann::json::array();
};

}  // namespace simile::bench::gpu
