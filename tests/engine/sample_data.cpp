#include "engine/sample_data.h"

#include <cmath>
#include <random>
#include <utility>

#include <gtest/gtest.h>

#include "engine/fake_segment.h"

namespace simile::engine {

data::Matrix MakeMatrix(const std::vector<std::vector<float>>& rows) {
  data::Matrix matrix = data::Matrix::Create(rows.size(), rows.front().size()).value();
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::copy(rows[row].begin(), rows[row].end(), matrix.MutableRow(row));
  }
  return matrix;
}

data::Matrix RandomMatrix(std::size_t row_count, std::size_t dim, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  data::Matrix matrix = data::Matrix::Create(row_count, dim).value();
  std::vector<double> values(dim);
  for (std::size_t row = 0; row < row_count; ++row) {
    double squares = 0;
    for (double& value : values) {
      value = normal(random);
      squares += value * value;
    }
    for (std::size_t column = 0; column < dim; ++column) {
      matrix.MutableRow(row)[column] = static_cast<float>(values[column] / std::sqrt(squares));
    }
  }
  return matrix;
}

data::IdIndex MakeIds(const std::vector<std::string>& ids) {
  data::IdIndex::Builder builder(ids.size());
  for (const std::string& id : ids) EXPECT_TRUE(builder.Add(id).ok()) << id;
  return std::move(builder).Build();
}

std::shared_ptr<data::Dataset> RandomDataset(std::size_t row_count, std::size_t dim,
                                             std::uint64_t seed) {
  auto dataset = std::make_shared<data::Dataset>();
  dataset->vectors = RandomMatrix(row_count, dim, seed);
  dataset->longest_row = 1 + 0x1p-20;  // unit length, rounded
  dataset->ids = data::IdIndex::OfRowNumbers(row_count);
  return dataset;
}

Snapshot MakeSnapshot(std::shared_ptr<const data::Dataset> dataset,
                      std::shared_ptr<FakeSegment>* segment) {
  auto fake = std::make_shared<FakeSegment>(dataset->vectors.view());
  if (segment != nullptr) *segment = fake;
  Snapshot snapshot;
  snapshot.collection = "films";
  snapshot.version = 1;
  snapshot.filters = filter::Filters::Create(*dataset, snapshot.collection);
  snapshot.searchable = SearchableRows(*dataset);
  snapshot.dataset = std::move(dataset);
  snapshot.segments.push_back(std::move(fake));
  return snapshot;
}

}  // namespace simile::engine
