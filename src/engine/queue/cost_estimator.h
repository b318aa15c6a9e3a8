#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace simile::engine {

// Estimates how long work on the device takes, in milliseconds. Starts with a model of a processor
// with a few cores, and corrects it by measured times. Passes are corrected by snapshot, by number
// of searches and by length of the lists, because kernels and strategies change with these. Pure;
// not thread-safe.
class CostEstimator {
 public:
  CostEstimator() { shapes_.reserve(kShapesMax); }

  // The properties that the cost of a search depends on.
  struct Shape {
    const void* snapshot = nullptr;  // identity only
    std::uint64_t values = 0;        // rows * dim
    std::uint32_t k_class = 0;       // ToKClass
    bool can_pause = true;           // whether a pass over it may be paused between its pieces
    // The segments' sufficient batch; no limit when none was measured.
    std::uint32_t pass_searches_max = std::numeric_limits<std::uint32_t>::max();

    bool IsLike(const Shape& other) const {
      return snapshot == other.snapshot && k_class == other.k_class;
    }
  };
  // The class of k. Searches of one class cost about the same. Class 0 has the lists whose scoring
  // and sorting hardly count; each further class doubles the length.
  static std::uint32_t ToKClass(std::uint32_t k, std::size_t row_count);

  // Estimates a pass of this many searches, 1 or more. At most the estimate of any larger pass,
  // because the only measured pass of this size may have been held up. Cost O(shapes measured), at
  // most kShapesMax.
  double PassMs(const Shape& shape, std::uint32_t searches) const;
  // The most searches whose pass takes at most `ms`, which may be infinite. At least 1, at most
  // searches_max. Above kFirstSearchesMax at most kGrowth times the largest measured pass, because
  // estimates of much larger passes are not safe.
  std::uint32_t SearchesWithin(const Shape& shape, double ms, std::uint32_t searches_max) const;
  // The fewest searches of a pass, at most searches_max, with which a search costs hardly more than
  // in the cheapest pass. A larger pass would only make the first searches wait for the last.
  std::uint32_t SearchesThatPay(const Shape& shape, std::uint32_t searches_max) const;
  // Estimates forming canonical scores of rows, or comparing rows.
  //   products  scores * dim
  double ScoresMs(double products) const;

  // What passes of this shape took, by the powers of two of their searches, fewest first.
  struct PassTime {
    std::uint32_t searches = 0;
    double ms = 0;
  };
  std::vector<PassTime> ListPassTimes(const Shape& shape) const;

  // Record the time of a pass, and of scoring alone. Take no memory.
  void AddPass(const Shape& shape, std::uint32_t searches, double ms);
  // Records the size of a pass without its time. Later passes may grow as after AddPass.
  void AddPassSize(const Shape& shape, std::uint32_t searches);
  void AddScores(double products, double ms);
  // Forgets the passes over a snapshot.
  void Forget(const void* snapshot);

  static constexpr std::size_t kShapesMax = 64;
  static constexpr std::uint32_t kGrowth = 4;
  static constexpr std::uint32_t kFirstSearchesMax = 64;

 private:
  // measured / modelled, as a moving average of logarithms, so that a single pass that was held up
  // changes little. 0: not measured.
  class Correction {
   public:
    void Add(double ratio);
    bool measured() const { return factor_ > 0; }
    double factor() const { return measured() ? factor_ : 1; }

   private:
    double factor_ = 0;
  };
  // One size for each power of two of the number of searches.
  static constexpr std::size_t kSizes = 11;
  using Corrections = std::array<Correction, kSizes>;
  static constexpr std::size_t kClasses = 7;  // of k; the last holds kHitsMax
  struct Measured {
    Shape shape;
    std::uint32_t searches_max = 0;  // of its largest pass
    Corrections of_size;
  };

  // The model's estimate: a part for the pass, and a part for each search.
  struct Model {
    double pass_ms = 0;
    double search_ms = 0;
    double Ms(std::uint32_t searches) const { return pass_ms + searches * search_ms; }
  };
  static Model MakeModel(const Shape& shape);
  static std::size_t ToSizeIndex(std::uint32_t searches);
  // The correction of the size, or of the nearest measured size; null when none is measured.
  static const Correction* Nearest(const Corrections& corrections, std::size_t size);
  const Measured* Find(const Shape& shape) const;
  // Finds or adds the shape, and moves it to the end as the one measured last.
  Measured& MeasuredNow(const Shape& shape);
  const Corrections& FindCorrections(const Shape& shape) const;

  std::array<Corrections, kClasses> of_all_;  // by class of k: for shapes not measured yet
  std::vector<Measured> shapes_;  // at most kShapesMax; the shape measured last is at the end
  Correction scores_;
};

}  // namespace simile::engine
