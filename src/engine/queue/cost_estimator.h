#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace simile::engine {

// How long work on the device will take, in milliseconds. It begins with a model of a processor of
// a few cores and corrects it by what the work took: passes for each snapshot apart, and by how
// many searches they had and how long their lists are, since kernels and strategies change with
// that. Pure; not thread-safe.
class CostEstimator {
 public:
  CostEstimator() { shapes_.reserve(kShapesMax); }

  // What the cost of a search depends on.
  struct Shape {
    const void* snapshot = nullptr;  // identity only
    std::uint64_t values = 0;        // rows * dim
    std::uint32_t k_class = 0;       // ToKClass
    bool can_pause = true;           // whether a pass over it may be paused between its pieces
    // The segments' sufficient batch; no limit where none was measured.
    std::uint32_t pass_searches_max = std::numeric_limits<std::uint32_t>::max();

    bool IsLike(const Shape& other) const {
      return snapshot == other.snapshot && k_class == other.k_class;
    }
  };
  // Searches for k of so many rows cost about the same as others of their class: 0 while scoring
  // and sorting the list hardly counts, and then one for each power of two.
  static std::uint32_t ToKClass(std::uint32_t k, std::size_t row_count);

  // A pass of so many searches, 1 or more. No more than passes of more searches took: the only one
  // of its size may have been held up. Cost O(shapes measured), which are kShapesMax at most.
  double PassMs(const Shape& shape, std::uint32_t searches) const;
  // The most searches whose pass takes no longer, which may be infinite; 1 at least, searches_max
  // at most. Beyond kFirstSearchesMax no more than kGrowth times those of a pass that was measured:
  // estimates of much larger passes are not safe.
  std::uint32_t SearchesWithin(const Shape& shape, double ms, std::uint32_t searches_max) const;
  // The fewest searches of a pass, searches_max at most, with which each costs hardly more than in
  // the pass where it costs least. A larger pass would only make the first ones wait for the last.
  std::uint32_t SearchesThatPay(const Shape& shape, std::uint32_t searches_max) const;
  // Forming the canonical scores of rows, or comparing rows: so many scores * dim.
  double ScoresMs(double products) const;

  // What passes of this shape took, by the powers of two of their searches, fewest first.
  struct PassTime {
    std::uint32_t searches = 0;
    double ms = 0;
  };
  std::vector<PassTime> ListPassTimes(const Shape& shape) const;

  // What a pass, and what scoring alone, took. Take no memory.
  void AddPass(const Shape& shape, std::uint32_t searches, double ms);
  // The size of a pass whose time is not recorded. Later passes may grow as after AddPass.
  void AddPassSize(const Shape& shape, std::uint32_t searches);
  void AddScores(double products, double ms);
  // Forgets the passes over a snapshot.
  void Forget(const void* snapshot);

  static constexpr std::size_t kShapesMax = 64;
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
  static constexpr std::size_t kClasses = 7;  // of k: those of kHitsMax are the last
  struct Measured {
    Shape shape;
    std::uint32_t searches_max = 0;  // of its largest pass
    Corrections of_size;
  };

  // What the model says of a pass: a part for every pass, and one for each search.
  struct Model {
    double pass_ms = 0;
    double search_ms = 0;
    double Ms(std::uint32_t searches) const { return pass_ms + searches * search_ms; }
  };
  static Model MakeModel(const Shape& shape);
  static std::size_t ToSizeIndex(std::uint32_t searches);
  // The correction of the size, or of the nearest one that is measured; null: none is.
  static const Correction* Nearest(const Corrections& corrections, std::size_t size);
  const Measured* Find(const Shape& shape) const;
  // The shape as the one that was measured last.
  Measured& MeasuredNow(const Shape& shape);
  const Corrections& FindCorrections(const Shape& shape) const;

  std::array<Corrections, kClasses> of_all_;  // by class of k: for shapes not measured yet
  std::vector<Measured> shapes_;  // [kShapesMax] at most; the one measured last comes last
  Correction scores_;
};

}  // namespace simile::engine
