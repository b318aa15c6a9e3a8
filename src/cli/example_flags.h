#pragma once

#include <optional>
#include <string>
#include <vector>

#include <absl/status/status.h>

#include "cli/command_line.h"
#include "simile/v1/search.pb.h"

namespace simile::cli {

// More to be like, and what to be unlike.
struct ExampleFlags {
  std::vector<std::string> like;
  std::vector<std::string> unlike;
  std::optional<std::string> strategy;

  // A strategy alone counts, so that it is refused and not passed over.
  bool given() const { return !like.empty() || !unlike.empty() || strategy.has_value(); }
};
void AddExampleFlags(Command& command, ExampleFlags& flags);

// Makes examples of what a query is for, and of what the flags name beside it.
//   query  with a vector, an id, or no target yet
// Errors: kInvalidArgument for an unknown strategy, or one that has nothing to combine.
absl::Status TurnIntoExamples(const ExampleFlags& flags, v1::Query& query);

}  // namespace simile::cli
