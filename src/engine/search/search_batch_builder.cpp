#include "engine/search/search_batch_builder.h"

namespace simile::engine {

void SearchBatchBuilder::Clear(std::size_t dim) {
  dim_ = dim;
  vectors_.clear();
  specs_.clear();
}

std::size_t SearchBatchBuilder::Add(const float* vector, const QuerySpec& spec) {
  vectors_.insert(vectors_.end(), vector, vector + PaddedDim(dim_));
  specs_.push_back(spec);
  return specs_.size() - 1;
}

}  // namespace simile::engine
