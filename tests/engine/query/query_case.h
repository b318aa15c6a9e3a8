#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "certificate/seeded_random.h"
#include "engine/query/query_request.h"
#include "engine/search/search_task.h"
#include "engine/snapshots/snapshot.h"

namespace simile::engine {

// A random collection: clustered rows with duplicates among them, in one of four also rows of zeros
// (which cosine skips), tags, series and years, users with tastes and histories. The same for the
// same seed.
std::shared_ptr<const data::Dataset> RandomCollection(tests::SeededRandom& random);

// A snapshot of the dataset with one segment, which the backend made.
engine::SnapshotPtr SnapshotOn(Backend& backend, std::shared_ptr<const data::Dataset> dataset);

// What a random query is made from.
enum class Kind : std::uint8_t { kVector, kItem, kUser, kAverage, kBestScore, kSumScores, kBlend };

// A random request of this kind with eight examples or so: a filter, exclusions, a threshold and an
// offset now and then, any k.
QueryRequest DrawRequest(Kind kind, const data::Dataset& dataset, tests::SeededRandom& random);

// Whether the request's filter lets a row pass: every filter that DrawRequest writes, evaluated
// without the program's filter code.
bool FilterPasses(std::string_view filter, const data::Dataset& dataset, Row row);

// A task as the service makes it: resolved, not yet run.
std::unique_ptr<engine::SearchTask> MakeTask(const engine::SnapshotPtr& snapshot,
                                             const std::vector<QueryRequest>& requests);

// The results of all tasks, [tasks][queries], run as one batch.
std::vector<std::vector<engine::QueryResult>> RunBatch(
    const std::vector<std::unique_ptr<engine::SearchTask>>& tasks);

}  // namespace simile::engine
