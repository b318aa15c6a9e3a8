#include "backend/cpu/int8_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "backend/guarded_buffer.h"
#include "certificate/quantizer.h"
#include "certificate/seeded_random.h"

namespace simile::backend::cpu {
namespace {

using tests::GuardedBuffer;
using tests::SeededRandom;

// How codes and bytes are drawn; the extremes give the greatest sums of either sign.
enum class Codes : std::size_t { kRandom, kGreatest, kLeast, kExtremes, kZero, kCount };

// How row bytes are packed.
enum class Packing { kBytes, kInt4 };

struct Shape {
  std::size_t code_dim = 64;
  std::size_t group_count = 4;
  std::size_t query_count = 1;
  std::size_t row_count() const { return group_count * kGroupRows; }
};

using HitSet = std::set<std::tuple<std::uint32_t, std::uint32_t, std::int32_t>>;

// Makes the codes of each four columns smaller where they exceed a kernel's limit, to just fit it.
void LimitFourColumns(std::vector<std::int8_t>& codes, std::int32_t four_columns_max) {
  for (std::size_t first = 0; first < codes.size(); first += 8) {
    std::int32_t positive[2] = {};
    std::int32_t negative[2] = {};
    const auto sum_of = [&](std::size_t i) -> std::int32_t& {
      return (codes[first + i] > 0 ? positive : negative)[WhichFour(i)];
    };
    for (std::size_t i = 0; i < 8; ++i) sum_of(i) += std::abs(codes[first + i]);
    for (std::size_t i = 0; i < 8; ++i) {
      const std::int32_t sum = sum_of(i);
      if (sum > four_columns_max)
        codes[first + i] = static_cast<std::int8_t>(codes[first + i] * four_columns_max / sum);
    }
  }
}

// A block and its queries, as plain numbers and as kernels want them.
class KernelCase {
 public:
  //   four_columns_max  of the kernel
  KernelCase(const Shape& shape, Codes codes, Packing packing, std::int32_t four_columns_max,
             SeededRandom& random)
      : shape_(shape),
        packing_(packing),
        tiles_((shape.query_count + kTileQueries - 1) / kTileQueries),
        rows_(shape.row_count() * shape.code_dim / (packing == Packing::kBytes ? 1 : 2)),
        queries_((tiles_ + 1) * kTileQueries * shape.code_dim),
        starts_(shape.query_count) {
    constexpr std::int32_t code_max = certificate::kByteCodeMax;
    constexpr std::size_t byte_max = 255;  // also how many codes there are
    std::vector<std::int8_t> query_codes(queries_.all().size());
    for (std::int8_t& code : query_codes) {
      code = static_cast<std::int8_t>(static_cast<std::int32_t>(random.Below(byte_max)) - code_max);
      if (codes == Codes::kGreatest) code = static_cast<std::int8_t>(code_max);
      if (codes == Codes::kLeast) code = static_cast<std::int8_t>(-code_max);
      if (codes == Codes::kExtremes)
        code =
            static_cast<std::int8_t>((static_cast<std::int32_t>(random.Below(3)) - 1) * code_max);
      if (codes == Codes::kZero) code = 0;
    }
    if (four_columns_max > 0) LimitFourColumns(query_codes, four_columns_max);
    std::vector<std::uint8_t> row_bytes(shape.row_count() * shape.code_dim);
    std::vector<std::uint8_t> int4(row_bytes.size());
    for (std::uint8_t& code : int4) code = static_cast<std::uint8_t>(random.Below(16));
    for (std::uint8_t& byte : packing == Packing::kBytes ? row_bytes : int4_bytes_) {
      byte = static_cast<std::uint8_t>(random.Below(byte_max + 1));
      if (codes == Codes::kGreatest || codes == Codes::kLeast)
        byte = static_cast<std::uint8_t>(byte_max);
      if (codes == Codes::kExtremes)
        byte = static_cast<std::uint8_t>(random.OneIn(2) ? byte_max : 0);
    }
    if (packing == Packing::kInt4) {
      for (std::size_t i = 0; i < int4.size(); ++i) row_bytes[i] = int4_bytes_[int4[i]];
      PackInt4(int4);
    } else {
      PackBytes(row_bytes);
    }
    PackQueries(query_codes);
    Score(query_codes, row_bytes);
  }

  const Shape& shape() const { return shape_; }
  // Starts at which about one sum in `one_in` of each query is a hit; 0: none, 1: all.
  void DrawStarts(std::size_t one_in, SeededRandom& random) {
    const std::size_t rows = shape_.row_count();
    for (std::size_t query = 0; query < shape_.query_count; ++query) {
      std::vector<std::int32_t> sums(
          sums_.begin() + static_cast<std::ptrdiff_t>(query * rows),
          sums_.begin() + static_cast<std::ptrdiff_t>((query + 1) * rows));
      std::ranges::sort(sums);
      // At one sum exactly: it is a hit, and the next lower one is not.
      const std::size_t hits = one_in == 0 ? 0 : std::max<std::size_t>(1, rows / one_in);
      starts_.all()[query] = hits == 0 ? -sums.back() - 1 : -sums[rows - hits];
      if (one_in > 1 && random.OneIn(3)) starts_.all()[query] = -(1 << 30);
    }
  }

  HitSet Expected(std::size_t first, std::size_t count) {
    HitSet hits;
    const std::size_t rows = shape_.row_count();
    const auto begin = static_cast<std::uint32_t>(first);
    for (std::uint32_t query = begin; query < begin + count; ++query) {
      for (std::uint32_t row = 0; row < rows; ++row) {
        const std::int32_t sum = starts_.all()[query] + sums_[query * rows + row];
        if (sum >= 0) hits.emplace(query, row, sum);
      }
    }
    return hits;
  }

  //   first, count  the queries to scan for
  void ExpectSameHits(const Int8Kernel& kernel, const HitSet& expected, std::size_t first,
                      std::size_t count) {
    const std::size_t hits_max = count * shape_.row_count();
    GuardedBuffer<std::uint32_t> pairs(hits_max);
    GuardedBuffer<std::int32_t> sums(hits_max);
    GuardedBuffer<std::int32_t> scratch(ScratchBytes(count) / sizeof(std::int32_t));
    HitList hits{pairs.data(), sums.data(), 12'345};
    kernel.enter(shape_.query_count);
    kernel.scan({.codes = rows_.data(),
                 .int4_bytes = packing_ == Packing::kInt4 ? int4_bytes_.data() : nullptr,
                 .group_count = shape_.group_count,
                 .code_dim = shape_.code_dim,
                 .queries = queries_.data() + CodesAt(first),
                 .query_count = count,
                 .starts = starts_.data() + first,
                 .hits = &hits,
                 .next = rows_.data(),
                 .next_bytes = rows_.all().size(),
                 .scratch = scratch.data()});
    kernel.leave();
    ASSERT_LE(hits.count, hits_max);
    HitSet actual;
    for (std::size_t i = 0; i < hits.count; ++i) {
      const auto query = static_cast<std::uint32_t>(first + QueryOf(pairs.data()[i]));
      const auto row = static_cast<std::uint32_t>(RowOf(pairs.data()[i]));
      ASSERT_TRUE(actual.emplace(query, row, sums.data()[i]).second)
          << "query " << query << " and row " << row << " twice";
    }
    ASSERT_EQ(actual.size(), expected.size());
    ASSERT_TRUE(actual == expected);
    ASSERT_TRUE(pairs.GuardsIntact() && sums.GuardsIntact() && scratch.GuardsIntact() &&
                rows_.GuardsIntact() && queries_.GuardsIntact() && starts_.GuardsIntact());
  }

 private:
  void PackBytes(const std::vector<std::uint8_t>& row_bytes) {
    const std::size_t dim = shape_.code_dim;
    for (std::size_t row = 0; row < shape_.row_count(); ++row) {
      std::uint8_t* group = rows_.data() + row / kGroupRows * kGroupRows * dim;
      for (std::size_t i = 0; i < dim; ++i)
        group[i / 4 * 64 + row % kGroupRows * 4 + i % 4] = row_bytes[row * dim + i];
    }
  }

  void PackInt4(const std::vector<std::uint8_t>& int4) {
    const std::size_t dim = shape_.code_dim;
    for (std::size_t row = 0; row < shape_.row_count(); ++row) {
      std::uint8_t* group = rows_.data() + row / kGroupRows * kGroupRows * dim / 2;
      for (std::size_t i = 0; i < dim; ++i) {
        std::uint8_t& two = group[i / 8 * 64 + row % kGroupRows * 4 + i % 4];
        const unsigned code = int4[row * dim + i];
        two = static_cast<std::uint8_t>(i % 8 < 4 ? (two & 0xF0U) | code
                                                  : (two & 0x0FU) | code << 4U);
      }
    }
  }

  void PackQueries(const std::vector<std::int8_t>& query_codes) {
    const std::size_t dim = shape_.code_dim;
    // Places without a query hold random codes, which the kernel must ignore.
    for (std::size_t query = 0; query < (tiles_ + 1) * kTileQueries; ++query) {
      std::int8_t* codes = queries_.data() + CodesAt(query);
      for (std::size_t i = 0; i < dim; ++i)
        codes[i / 64 * kTileQueries * 64 + i % 64] = query_codes[query * dim + i];
    }
  }

  std::size_t CodesAt(std::size_t query) const {
    return query / kTileQueries * kTileQueries * shape_.code_dim + query % kTileQueries * 64;
  }

  void Score(const std::vector<std::int8_t>& query_codes,
             const std::vector<std::uint8_t>& row_bytes) {
    const std::size_t dim = shape_.code_dim;
    for (std::size_t query = 0; query < shape_.query_count; ++query) {
      for (std::size_t row = 0; row < shape_.row_count(); ++row) {
        std::int32_t sum = 0;
        for (std::size_t i = 0; i < dim; ++i)
          sum += query_codes[query * dim + i] * row_bytes[row * dim + i];
        sums_.push_back(sum);
      }
    }
  }

  const Shape shape_;
  const Packing packing_;
  const std::size_t tiles_;
  GuardedBuffer<std::uint8_t> rows_;
  GuardedBuffer<std::int8_t> queries_;
  GuardedBuffer<std::int32_t> starts_;
  std::vector<std::uint8_t> int4_bytes_ = std::vector<std::uint8_t>(16);
  std::vector<std::int32_t> sums_;  // [query, row]
};

std::string FormatShape(const Shape& shape) {
  return "dim " + std::to_string(shape.code_dim) + ", groups " + std::to_string(shape.group_count) +
         ", queries " + std::to_string(shape.query_count);
}

class Int8KernelTest : public ::testing::TestWithParam<const Int8Kernel*> {
 protected:
  void CheckShape(const Shape& shape, Codes codes, SeededRandom& random) {
    CheckShape(shape, codes, Packing::kBytes, random);
    if (HasFatalFailure() || !GetParam()->reads_int4) return;
    CheckShape(shape, codes, Packing::kInt4, random);
  }

 private:
  void CheckShape(const Shape& shape, Codes codes, Packing packing, SeededRandom& random) {
    KernelCase drawn(shape, codes, packing, GetParam()->four_columns_max, random);
    for (const std::size_t one_in : {0U, 1U, 20U, 500U}) {
      // A set of every sum of a large case would take longer than forming the sums.
      if (one_in == 1 && shape.query_count * shape.row_count() > 50'000) continue;
      drawn.DrawStarts(one_in, random);
      const std::size_t all = shape.query_count;
      drawn.ExpectSameHits(*GetParam(), drawn.Expected(0, all), 0, all);
      // A few of them, from the middle of a tile on.
      const std::size_t first = all / 3 / kQueriesTogether * kQueriesTogether;
      const std::size_t some = std::min(kQueriesTogether, all - first);
      drawn.ExpectSameHits(*GetParam(), drawn.Expected(first, some), first, some);
      if (HasFatalFailure()) return;
    }
  }
};

// Around one tile, two tiles and the number of tiles that fits a cache.
constexpr std::size_t kQueryCounts[] = {1,  2,  3,  4,   5,   15,  16,  17,  31,   32,
                                        33, 48, 63, 100, 128, 144, 145, 160, 1'000};
constexpr std::size_t kDims[] = {64, 128, 192, 384, 1'024, 4'096};
constexpr std::size_t kGroupCounts[] = {4, 8, 12, 20, 64};

Shape DrawShape(std::size_t query_count, SeededRandom& random) {
  constexpr std::size_t kWorkMax = 8'000'000;  // multiply-adds of the plain sum
  for (;;) {
    const Shape shape{kDims[random.Below(std::size(kDims))],
                      kGroupCounts[random.Below(std::size(kGroupCounts))], query_count};
    if (shape.code_dim * shape.row_count() * query_count <= kWorkMax) return shape;
  }
}

TEST_P(Int8KernelTest, FindsTheHitsOfAPlainSumAtEveryTail) {
  constexpr std::uint64_t kSeed = 41;
  SeededRandom random(kSeed);
  std::vector<Shape> shapes{{64, 64, 1'000}, {384, 64, 100}, {4'096, 64, 4}};
  for (const std::size_t query_count : kQueryCounts) {
    for (int draw = 0; draw < 3; ++draw) shapes.push_back(DrawShape(query_count, random));
  }
  for (const Shape& shape : shapes) {
    const auto codes = static_cast<Codes>(random.Below(static_cast<std::size_t>(Codes::kCount)));
    CheckShape(shape, codes, random);
    ASSERT_FALSE(HasFatalFailure()) << GetParam()->isa << ", seed " << kSeed << ", "
                                    << FormatShape(shape) << ", codes " << static_cast<int>(codes);
  }
}

TEST_P(Int8KernelTest, FormsTheGreatestSumsWithoutSaturating) {
  constexpr std::uint64_t kSeed = 42;
  SeededRandom random(kSeed);
  for (std::size_t codes = 0; codes < static_cast<std::size_t>(Codes::kCount); ++codes) {
    for (const std::size_t queries : {1U, 16U, 33U}) {
      CheckShape({4'096, 4, queries}, static_cast<Codes>(codes), random);
      ASSERT_FALSE(HasFatalFailure())
          << GetParam()->isa << ", seed " << kSeed << ", codes " << codes << ", " << queries;
    }
  }
}

TEST_P(Int8KernelTest, IsFoundByItsName) { EXPECT_EQ(FindInt8Kernel(GetParam()->isa), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Isas, Int8KernelTest, ::testing::ValuesIn(SupportedInt8Kernels()),
                         [](const auto& test) { return std::string(test.param->isa); });

TEST(Int8KernelTableTest, EndsWithThePortableKernel) {
  EXPECT_EQ(SupportedInt8Kernels().back(), &kInt8Portable);
}

TEST(Int8KernelTableTest, FindsNothingUnderAnUnknownName) {
  EXPECT_EQ(FindInt8Kernel("nonsense"), nullptr);
  EXPECT_EQ(FindInt8Kernel(""), nullptr);
  EXPECT_EQ(FindInt8Kernel("AMX"), nullptr);
}

TEST(Int8KernelTableTest, SaysWhyThereIsNoAmxExactlyWhenThereIsNone) {
  EXPECT_EQ(WhyNoAmx().empty(), FindInt8Kernel("amx") != nullptr) << WhyNoAmx();
}

}  // namespace
}  // namespace simile::backend::cpu
