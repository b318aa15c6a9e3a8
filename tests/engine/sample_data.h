#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/load/dataset.h"
#include "data/matrix.h"
#include "engine/snapshots/snapshot.h"

namespace simile::engine {

// A matrix of the given rows, all equally long.
data::Matrix MakeMatrix(const std::vector<std::vector<float>>& rows);

// Unit-length rows, the same for the same seed.
data::Matrix RandomMatrix(std::size_t row_count, std::size_t dim, std::uint64_t seed);

// Ids in the order given. REQUIRES: distinct.
data::IdIndex MakeIds(const std::vector<std::string>& ids);

// A dataset of random rows whose ids are their numbers.
std::shared_ptr<data::Dataset> RandomDataset(std::size_t row_count, std::size_t dim,
                                             std::uint64_t seed);

// An unpublished snapshot of a dataset over one FakeSegment, which is also returned through
// `segment` unless that is null.
class FakeSegment;
Snapshot MakeSnapshot(std::shared_ptr<const data::Dataset> dataset,
                      std::shared_ptr<FakeSegment>* segment = nullptr);

}  // namespace simile::engine
