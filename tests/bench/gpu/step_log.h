#pragma once

#include <string>

#include <absl/status/status.h>
#include <nlohmann/json.hpp>

namespace simile::bench::gpu {

// The measured figures, line by line: each is printed and written to the JSON file at once.
// gpu_decisions.py, which can be tested without a card, draws the conclusions.
class StepLog {
 public:
  //   head  what the file says beside its `lines`
  //   path  of the file; empty: none
  StepLog(nlohmann::json head, std::string path);

  //   figures  an object; names end in their unit
  void Add(const std::string& step, const std::string& shape, nlohmann::json figures);
  // Says in the file why a part was not measured.
  void Skip(const std::string& part, const std::string& why);
  // Adds to what the file says beside its lines.
  void Set(const std::string& name, nlohmann::json value);

  // Errors: the first of writing the file.
  const absl::Status& status() const { return status_; }

 private:
  nlohmann::json json_;
  const std::string path_;
  absl::Status status_;
};

}  // namespace simile::bench::gpu
