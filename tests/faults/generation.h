#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <google/protobuf/repeated_field.h>
#include <gtest/gtest.h>

#include "simile/v1/search.pb.h"
#include "simile/v1/types.pb.h"

namespace simile::faults {

// The content of a small collection, which differs from that of every other seed in each answer.
// Items are called item-0, item-1, ...; there is a payload, users and what they have seen.
class Generation {
 public:
  struct Shape {
    std::size_t rows = 400;
    std::size_t dim = 24;
    const char* metric = "dot";
  };
  static constexpr std::size_t kHits = 10;
  static constexpr std::size_t kUsers = 5;

  explicit Generation(std::uint64_t seed) : Generation(seed, Shape()) {}
  Generation(std::uint64_t seed, const Shape& shape);

  // Writes the files of the collection; `vectors` in place of its own when not empty.
  void Write(const std::filesystem::path& folder, const std::vector<float>& vectors = {}) const;

  const Shape& shape() const { return shape_; }
  const std::vector<float>& vectors() const { return vectors_; }  // [rows, dim]

  // Item `row`'s neighbours by number of the item, as the canonical score orders them, without
  // itself. REQUIRES: the metric is dot.
  struct Expected {
    std::size_t row = 0;
    float score = 0;
  };
  std::vector<Expected> Neighbours(std::size_t row) const;

  // A search for them.
  static v1::SearchRequest Search(std::size_t row, const std::string& collection = "items");
  // Whether these are they, scores to the bit.
  static testing::AssertionResult Equal(const google::protobuf::RepeatedPtrField<v1::Hit>& hits,
                                        const std::vector<Expected>& expected);

 private:
  const Shape shape_;
  const std::uint64_t seed_;
  std::vector<float> vectors_;
};

}  // namespace simile::faults
