#include "cli/example_flags.h"

#include <absl/status/statusor.h>
#include <fmt/format.h>

namespace simile::cli {
namespace {

absl::StatusOr<v1::Examples::Strategy> StrategyOf(const ExampleFlags& flags, bool has_positive) {
  if (!flags.strategy) {
    return has_positive ? v1::Examples::AVERAGE_VECTOR : v1::Examples::BEST_SCORE;
  }
  if (*flags.strategy == "average-vector") return v1::Examples::AVERAGE_VECTOR;
  if (*flags.strategy == "best-score") return v1::Examples::BEST_SCORE;
  if (*flags.strategy == "sum-scores") return v1::Examples::SUM_SCORES;
  return absl::InvalidArgumentError(
      fmt::format("--strategy {}: give average-vector, best-score or sum-scores", *flags.strategy));
}

}  // namespace

void AddExampleFlags(Command& command, ExampleFlags& flags) {
  command.List("--like", flags.like, "ID,ID", "Items to be like, all together")
      .List("--unlike", flags.unlike, "ID,ID", "Items to be unlike")
      .Text("--strategy", flags.strategy, "NAME",
            "How --like and --unlike make a score: average-vector, best-score or sum-scores");
}

absl::Status TurnIntoExamples(const ExampleFlags& flags, v1::Query& query) {
  if (flags.like.empty() && flags.unlike.empty()) {
    return absl::InvalidArgumentError("--strategy is how --like and --unlike make a score");
  }
  v1::Examples examples;
  if (query.has_id()) examples.add_positive()->set_id(query.id());
  if (query.has_vector()) *examples.add_positive()->mutable_vector() = query.vector();
  for (const std::string& id : flags.like) examples.add_positive()->set_id(id);
  for (const std::string& id : flags.unlike) examples.add_negative()->set_id(id);
  const auto strategy = StrategyOf(flags, !examples.positive().empty());
  if (!strategy.ok()) return strategy.status();
  examples.set_strategy(*strategy);
  *query.mutable_examples() = std::move(examples);
  return absl::OkStatus();
}

}  // namespace simile::cli
