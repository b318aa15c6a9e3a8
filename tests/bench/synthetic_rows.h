#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "backend/cpu/thread_pool.h"
#include "data/matrix.h"

namespace simile::bench {

enum class Spread : std::uint8_t {
  kIsotropic,  // every direction equally likely: the hardest case for finding few candidates
  kClustered,  // most rows lie around a few thousand centres, as sentence embeddings do
};

// Draws vectors, each from its own number, so that they do not depend on the number of threads.
// Clustered: centres in random directions, sizes by Zipf's law; a row's cosine to its centre is
// uniform in 0.5 .. 0.9, and one row in ten belongs to none.
class SyntheticRows {
 public:
  //   norm_spread  lengths are log-uniform in 1 .. norm_spread; 1 is unit length
  SyntheticRows(Spread spread, std::size_t dim, std::uint64_t seed, double norm_spread);

  // Rows number first .. first + count - 1.
  absl::StatusOr<data::Matrix> Draw(std::uint64_t first, std::size_t count,
                                    backend::cpu::ThreadPool& pool) const;

  // Numbers from here on are no rows of a collection; its queries are drawn from them.
  static constexpr std::uint64_t kFirstQuery = std::uint64_t{1} << 40;

 private:
  void DrawRow(std::uint64_t number, float* row, std::vector<float>& noise) const;
  std::size_t CentreAt(double share) const;

  const Spread spread_;
  const std::size_t dim_;
  const std::uint64_t seed_;
  const double norm_spread_;
  std::vector<float> centres_;        // [centre, dim], unit length
  std::vector<double> shares_up_to_;  // [centre]  of the rows that have a centre
};

}  // namespace simile::bench
