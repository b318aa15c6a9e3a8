#include "bench/gpu/step_log.h"

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "bench/gpu/json_file.h"

namespace simile::bench::gpu {

StepLog::StepLog(nlohmann::json head, std::string path)
    : json_(std::move(head)), path_(std::move(path)) {
  json_["lines"] = nlohmann::json::array();
}

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
  json_["lines"].push_back(std::move(figures));
  status_.Update(WriteJsonFile(json_, path_));
}

void StepLog::Skip(const std::string& part, const std::string& why) {
  fmt::print("{}: skipped, {}\n", part, why);
  std::fflush(stdout);
  json_["skipped"][part] = why;
  status_.Update(WriteJsonFile(json_, path_));
}

void StepLog::Set(const std::string& name, nlohmann::json value) {
  fmt::print("{}: {}\n", name, value.dump());
  std::fflush(stdout);
  json_[name] = std::move(value);
  status_.Update(WriteJsonFile(json_, path_));
}

}  // namespace simile::bench::gpu
