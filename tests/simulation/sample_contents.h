#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "data/load/dataset.h"
#include "engine/search/search_task.h"
#include "engine/snapshots/snapshot.h"
#include "simulation/simulator.h"

namespace simile::simulation {

// Contents that a collection may have: different vectors, so that the answer to any query says
// which content it is from.
inline constexpr std::size_t kContents = 4;
inline constexpr std::size_t kQueries = 6;

std::shared_ptr<const data::Dataset> DatasetOf(std::size_t content);
// A dataset of its own with that content.
data::Dataset CopyOfDataset(std::size_t content);
std::string FormatId(std::size_t content);
std::size_t ParseContent(const engine::Snapshot& snapshot);  // by its id

// Whether the generations of one schedule are freed.
class Lives {
 public:
  explicit Lives(Simulator& simulator) : simulator_(simulator) {}

  // Something that a generation owns; it lives as long as the generation.
  std::shared_ptr<const void> Begin();
  std::size_t alive() const { return alive_; }

 private:
  void End();

  Simulator& simulator_;
  std::size_t alive_ = 0;
};

// How a generation is searched.
struct Searches {
  std::size_t pieces = 1;  // of one that may be paused
  absl::Status status;     // in place of answers
  bool start = false;      // they run without a thread until they are advanced
  std::function<void()> on_start;
  std::function<void()> on_abandon;  // of one that was started and not advanced
};

// An unpublished generation of a content.
//   on_piece  called before each piece of a search, and before it computes
engine::Snapshot MakeGeneration(std::size_t content, std::function<void()> on_piece,
                                std::shared_ptr<const void> life, const Searches& searches = {});

// Queries [first, first + count) of kQueries as a task, without `done`, deadline and cancellation.
//   hard  diverse answers, which take searches and pieces of work
std::unique_ptr<engine::SearchTask> MakeTask(engine::SnapshotPtr snapshot, std::size_t first,
                                             std::size_t count, bool hard);
// Asks every query alone, once for all. REQUIRES: called before the first schedule.
void PrepareAnswers();
// Why the results are not those that the same queries get alone of that content; "" when they are.
std::string CheckResults(std::size_t content, std::size_t first, bool hard,
                         const std::vector<engine::QueryResult>& results);

}  // namespace simile::simulation
