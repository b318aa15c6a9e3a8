#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace simile::engine {

// How long work on the device will take, in milliseconds. It begins with a model of a processor of
// a few cores and corrects it by what the work took: passes for each snapshot apart, and by how
// many searches they had, since kernels and strategies change with that. Pure; not thread-safe.
class CostEstimator {
 public:
  // What the cost of a search depends on.
  struct Shape {
    const void* snapshot = nullptr;  // identity only
    std::uint64_t values = 0;        // rows * dim
  };

  // A pass of so many searches, 1 or more. Cost O(snapshots measured), which are kSnapshotsMax at
  // most.
  double PassMs(const Shape& shape, std::uint32_t searches) const;
  // The most searches whose pass takes no longer; 1 at least, searches_max at most. Beyond
  // kFirstSearchesMax no more than kGrowth times those of a pass that was measured: estimates of
  // much larger passes are not safe.
  std::uint32_t SearchesWithin(const Shape& shape, double ms, std::uint32_t searches_max) const;
  // Forming the canonical scores of rows, or comparing rows: so many scores * dim.
  double ScoresMs(double products) const;

  // What a pass, and what scoring, took.
  void AddPass(const Shape& shape, std::uint32_t searches, double ms);
  void AddScores(double products, double ms);

  static constexpr std::size_t kSnapshotsMax = 64;
  static constexpr std::uint32_t kGrowth = 4;
  static constexpr std::uint32_t kFirstSearchesMax = 64;

 private:
  // measured / modelled, as a moving average of logarithms: a single pass that was held up by
  // something else changes little. 0: not measured.
  class Correction {
   public:
    void Add(double ratio);
    bool measured() const { return factor_ > 0; }
    double factor() const { return measured() ? factor_ : 1; }

   private:
    double factor_ = 0;
  };
  // By the power of two of the number of searches.
  static constexpr std::size_t kSizes = 11;
  using Corrections = std::array<Correction, kSizes>;
  struct Measured {
    const void* snapshot = nullptr;
    std::uint32_t searches_max = 0;  // of its largest pass
    Corrections of_size;
  };

  static double ModelMs(std::uint64_t values, std::uint32_t searches);
  static std::size_t SizeOf(std::uint32_t searches);
  // The correction of the size, or of the nearest one that is measured; null: none is.
  static const Correction* Nearest(const Corrections& corrections, std::size_t size);
  const Measured* Find(const void* snapshot) const;

  Corrections of_all_;               // for snapshots that are not measured yet
  std::vector<Measured> snapshots_;  // the one measured last comes last
  Correction scores_;
};

}  // namespace simile::engine
