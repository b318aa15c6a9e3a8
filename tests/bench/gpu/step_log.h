#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace simile::bench::gpu {

// What is measured, line by line: printed at once, and kept for the JSON. What a figure decides is
// for gpu_decisions.py to say, which can be tested without a card.
class StepLog {
 public:
  //   figures  an object; names end in their unit
  void Add(const std::string& step, const std::string& shape, nlohmann::json figures);

  const nlohmann::json& lines() const { return lines_; }

 private:
  nlohmann::json lines_ = nlohmann::json::array();
};

}  // namespace simile::bench::gpu
