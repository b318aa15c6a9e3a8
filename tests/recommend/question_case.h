#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "certificate/seeded_random.h"
#include "engine/executor.h"
#include "engine/snapshot.h"
#include "recommend/query_request.h"

namespace simile::recommend {

// A random collection: clustered rows with duplicates among them, tags, series and years, users
// with tastes and histories. The same for the same seed.
std::shared_ptr<const data::Dataset> RandomCollection(testing::SeededRandom& random);

// A snapshot of it whose one segment this backend made.
engine::SnapshotPtr SnapshotOn(Backend& backend, std::shared_ptr<const data::Dataset> dataset);

// What a drawn query is made from.
enum class Kind : std::uint8_t { kVector, kItem, kUser, kAverage, kBestScore, kSumScores, kBlend };

// A random request of this kind with eight examples or so: a filter, exclusions, a threshold and an
// offset now and then, any k.
QueryRequest DrawRequest(Kind kind, const data::Dataset& dataset, testing::SeededRandom& random);

// Whether the request's filter lets a row pass: every filter that DrawRequest writes, read by other
// means than the program's.
bool FilterPasses(const std::string& filter, const data::Dataset& dataset, Row row);

// A task as the service makes it, answered by nobody yet.
std::unique_ptr<engine::SearchTask> TaskOf(const engine::SnapshotPtr& snapshot,
                                           const std::vector<QueryRequest>& requests);

// What all of it is answered in one batch.
std::vector<engine::SearchAnswer> AnswersTo(
    const std::vector<std::unique_ptr<engine::SearchTask>>& tasks);

}  // namespace simile::recommend
