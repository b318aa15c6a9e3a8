#include "engine/round.h"

namespace simile::engine {

void Round::Clear(std::size_t dim) {
  dim_ = dim;
  values_.clear();
  specs_.clear();
}

std::size_t Round::Add(const float* vector, const QuerySpec& spec) {
  values_.insert(values_.end(), vector, vector + PaddedDim(dim_));
  specs_.push_back(spec);
  return specs_.size() - 1;
}

}  // namespace simile::engine
