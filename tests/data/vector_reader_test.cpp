#include "data/formats/vector_reader.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "data/formats/byte_source.h"
#include "data/formats/vector_format.h"
#include "simile/limits.h"

namespace simile::data {
namespace {

template <typename Number>
std::string MakeNpy(const char* descr, std::size_t rows, std::size_t dim,
                    const std::vector<Number>& values) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}",
                                   descr, rows, dim);
  header.append(128 - 10 - 1 - header.size(), ' ');
  header += '\n';
  std::string file = "\x93NUMPY";
  file += '\x01';
  file += '\0';
  file += static_cast<char>(header.size());
  file += '\0';
  file += header;
  file.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number));
  return file;
}

struct Loaded {
  absl::StatusOr<Matrix> matrix;
  VectorFacts facts;
};

Loaded Load(const std::string& file, const VectorRules& rules) {
  MemorySource source("v.npy", file);
  BufferedReader in(source);
  const absl::StatusOr<VectorLayout> layout = ReadVectorLayout(in, "", Limits{});
  if (!layout.ok()) return {layout.status(), {}};
  VectorFacts facts;
  absl::StatusOr<Matrix> matrix = ReadMatrix(in, *layout, rules, facts);
  return {std::move(matrix), facts};
}

constexpr VectorRules kCosine{};
constexpr VectorRules kDot{.metric = Metric::kDot};
constexpr VectorRules kSkip{.on_zero_row = OnZeroRow::kSkip};

TEST(ReadVectorLayoutTest, NamesTheFormatThatAFileOfAnotherNameHas) {
  const auto refusal = [](const char* name, const std::string& file) {
    MemorySource source(name, file);
    BufferedReader in(source);
    return std::string(ReadVectorLayout(in, "", Limits{}).status().message());
  };
  EXPECT_EQ(refusal("media/v.safetensors", MakeNpy<float>("<f4", 1, 2, {1, 0})),
            "media/v.safetensors: looks like a .npy file; rename it to media/v.npy");
  const std::string header = R"({"v":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})";
  std::string tensors(1, static_cast<char>(header.size()));
  tensors.append(7, '\0').append(header).append(8, '\1');
  EXPECT_EQ(refusal("v.safetensors", tensors), "");
  EXPECT_EQ(refusal("v.npy", tensors),
            "v.npy: looks like a .safetensors file; rename it to v.safetensors");
}

TEST(ReadMatrixTest, NormalizesInDoubleForCosine) {
  constexpr std::size_t kRows = 70;
  constexpr std::size_t kDim = 37;
  constexpr unsigned kSeed = 5;
  std::cout << "seed " << kSeed << "\n";
  std::mt19937_64 random(kSeed);
  std::normal_distribution<double> normal;
  std::vector<double> values(kRows * kDim);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::ldexp(normal(random), static_cast<int>(i / kDim) - 35);
  }
  const Loaded loaded = Load(MakeNpy("<f8", kRows, kDim, values), kCosine);
  ASSERT_TRUE(loaded.matrix.ok()) << loaded.matrix.status();
  const MatrixView view = loaded.matrix->view();
  for (std::size_t row = 0; row < kRows; ++row) {
    long double sum = 0;
    for (std::size_t i = 0; i < kDim; ++i) {
      const long double value = values[row * kDim + i];
      sum += value * value;
    }
    for (std::size_t i = 0; i < kDim; ++i) {
      const auto exact = static_cast<double>(values[row * kDim + i] / std::sqrt(sum));
      ASSERT_LE(std::abs(static_cast<double>(view[row][i]) - exact),
                std::abs(exact) * 0x1.0001p-24);
    }
    for (std::size_t i = kDim; i < view.padded_dim(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(view.PaddedRow(row)[i]), 0U);
    }
  }
}

TEST(ReadMatrixTest, KeepsRowsAsGivenForDot) {
  const std::vector<float> values = {3, -4, 0x1p-149F, 1e-10F, -0.0F, 7};
  const Loaded loaded = Load(MakeNpy("<f4", 3, 2, values), kDot);
  ASSERT_TRUE(loaded.matrix.ok()) << loaded.matrix.status();
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(loaded.matrix->view()[i / 2][i % 2]),
              std::bit_cast<std::uint32_t>(values[i]));
  }
  EXPECT_NEAR(loaded.facts.shortest, 1e-10, 1e-17);
  EXPECT_EQ(loaded.facts.longest, 7);
}

TEST(ReadMatrixTest, MeasuresTheLengthThatIsKeptForDot) {
  // Rounded to fp32 it is exactly 2^60, which is allowed; as given it is above that.
  const std::vector<double> values = {0x1p60 * (1 + 0x1p-40), 0};
  EXPECT_TRUE(Load(MakeNpy("<f8", 1, 2, values), kDot).matrix.status().code() ==
              absl::StatusCode::kInvalidArgument);
  const std::vector<double> below = {0x1p60 * (1 - 0x1p-40), 0};
  const Loaded loaded = Load(MakeNpy("<f8", 1, 2, below), kDot);
  ASSERT_TRUE(loaded.matrix.ok()) << loaded.matrix.status();
  EXPECT_EQ(loaded.facts.longest, 0x1p60);
}

TEST(ReadMatrixTest, CountsAllRowsThatShareTheFirstFault) {
  constexpr std::size_t kRows = 5'000;
  std::vector<float> values(kRows * 3, 1);
  const auto at = [&values](std::size_t row, std::size_t column) -> float& {
    return values[row * 3 + column];
  };
  at(17, 2) = std::nanf("");
  at(18, 0) = HUGE_VALF;
  at(4'999, 0) = std::nanf("");
  for (std::size_t column = 0; column < 3; ++column) at(20, column) = 0;
  EXPECT_EQ(std::string(Load(MakeNpy("<f4", kRows, 3, values), kCosine).matrix.status().message()),
            "v.npy: row 17 holds NaN at column 2; vectors must be finite (3 of 5,000 rows are "
            "affected)");
}

TEST(ReadMatrixTest, KeepsRowsOfZerosForDot) {
  const Loaded loaded = Load(MakeNpy("<f4", 3, 2, std::vector<float>{3, 4, -0.0F, 0, 1, 0}), kDot);
  ASSERT_TRUE(loaded.matrix.ok()) << loaded.matrix.status();
  for (const float number : loaded.matrix->view()[1]) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(number), 0U);
  }
  EXPECT_EQ(loaded.facts.shortest, 0);
  EXPECT_EQ(loaded.facts.longest, 5);
  EXPECT_TRUE(loaded.facts.skipped_rows.empty());
}

TEST(ReadMatrixTest, SkipsRowsOfZerosForCosineWhereTheRulesSaySo) {
  const std::string file = MakeNpy("<f8", 4, 2, std::vector<double>{0, 0, 3, 4, 0, -0.0, 0, 2});
  const Loaded loaded = Load(file, kSkip);
  ASSERT_TRUE(loaded.matrix.ok()) << loaded.matrix.status();
  EXPECT_EQ(loaded.facts.skipped_rows, (std::vector<Row>{0, 2}));
  EXPECT_EQ(loaded.facts.shortest, 2);
  EXPECT_EQ(loaded.facts.longest, 5);
  EXPECT_EQ(loaded.matrix->view()[0][0], 0);
  EXPECT_EQ(loaded.matrix->view()[1][1], 0.8F);
  EXPECT_EQ(loaded.matrix->view()[2][1], 0);
  EXPECT_EQ(std::string(Load(file, kCosine).matrix.status().message()),
            "v.npy: row 0 is all zeros; a vector needs a direction; \"on_zero_row\": \"skip\" in "
            "collection.json leaves such rows out of every search (2 of 4 rows are affected)");
}

TEST(ReadMatrixTest, RefusesAFileOfZerosAlone) {
  const std::string file = MakeNpy("<f4", 2, 2, std::vector<float>{0, 0, 0, 0});
  for (const VectorRules& rules : {kDot, kSkip}) {
    EXPECT_EQ(Load(file, rules).matrix.status(),
              absl::InvalidArgumentError("v.npy: holds zeros alone; at least one row needs a "
                                         "direction"));
  }
}

// Rounded to fp32 the row is one of zeros. As given it has a direction, which would be lost.
TEST(ReadMatrixTest, RefusesARowThatRoundingMakesZeroForDot) {
  const std::vector<double> values = {3, 4, 1e-60, 0};
  EXPECT_EQ(std::string(Load(MakeNpy("<f8", 2, 2, values), kDot).matrix.status().message()),
            "v.npy: row 1 has length 1e-60; lengths must lie between 2^-60 (8.67e-19) and 2^60 "
            "(1.15e+18) (1 of 2 rows is affected)");
}

TEST(CheckRowsTest, ChecksAsReadMatrixDoes) {
  const std::vector<float> zeros = {0, 0, 3, 4, 0, 0};
  for (const VectorRules& rules : {kCosine, kDot, kSkip}) {
    const std::string file = MakeNpy("<f4", 3, 2, zeros);
    const Loaded loaded = Load(file, rules);
    MemorySource source("v.npy", file);
    BufferedReader in(source);
    const absl::StatusOr<VectorLayout> layout = ReadVectorLayout(in, "", Limits{});
    VectorFacts facts;
    EXPECT_EQ(CheckRows(in, *layout, rules, facts), loaded.matrix.status());
    EXPECT_EQ(facts.skipped_rows, loaded.facts.skipped_rows);
    EXPECT_EQ(facts.shortest, loaded.facts.shortest);
    EXPECT_EQ(facts.longest, loaded.facts.longest);
  }
}

TEST(CheckRowsTest, MeasuresTheValidRowsBesideTheFault) {
  const std::string file = MakeNpy("<f4", 3, 2, std::vector<float>{3, 4, 0, 0, 1, 0});
  MemorySource source("v.npy", file);
  BufferedReader in(source);
  const absl::StatusOr<VectorLayout> layout = ReadVectorLayout(in, "", Limits{});
  ASSERT_TRUE(layout.ok());
  VectorFacts facts;
  EXPECT_FALSE(CheckRows(in, *layout, kCosine, facts).ok());
  EXPECT_EQ(facts.shortest, 1);
  EXPECT_EQ(facts.longest, 5);
}

TEST(ReadVectorLayoutTest, RefusesOtherEndings) {
  MemorySource source("vectors.csv", "1,2\n");
  BufferedReader in(source);
  EXPECT_EQ(std::string(ReadVectorLayout(in, "", Limits{}).status().message()),
            "vectors.csv: vectors are read from .npy and .safetensors files");
}

struct Shape {
  std::size_t rows;
  std::size_t dim;
};

//   numbers  [rows, dim]; a file by columns holds the transpose
template <typename Number>
std::string NumPyFile(const char* descr, const Shape& shape, const std::vector<Number>& numbers,
                      bool by_column) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': ({}, {}), }}",
                                   descr, by_column ? "True" : "False", shape.rows, shape.dim);
  header.resize(117, ' ');
  std::string file = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n";
  const auto add = [&](std::size_t row, std::size_t column) {
    file.append(reinterpret_cast<const char*>(&numbers[row * shape.dim + column]), sizeof(Number));
  };
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    by_column ? add(i % shape.rows, i / shape.rows) : add(i / shape.dim, i % shape.dim);
  }
  return file;
}

Matrix ReadRows(const std::string& file, Metric metric) {
  MemorySource source("v.npy", file);
  BufferedReader in(source);
  const absl::StatusOr<VectorLayout> layout = ReadVectorLayout(in, "", Limits{});
  EXPECT_TRUE(layout.ok()) << layout.status();
  VectorFacts facts;
  absl::StatusOr<Matrix> matrix = ReadMatrix(in, *layout, {.metric = metric}, facts);
  EXPECT_TRUE(matrix.ok()) << matrix.status();
  return *std::move(matrix);
}

// A file that holds column after column gives the matrix of the same file row after row.
template <typename Number, typename FromFloat>
void ExpectSameBits(const char* descr, const Shape& shape, FromFloat from_float) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  std::vector<Number> numbers(shape.rows * shape.dim);
  for (Number& number : numbers) number = from_float(normal(random));
  for (const Metric metric : {Metric::kCosine, Metric::kDot}) {
    const Matrix by_row = ReadRows(NumPyFile(descr, shape, numbers, false), metric);
    const Matrix by_column = ReadRows(NumPyFile(descr, shape, numbers, true), metric);
    ASSERT_EQ(by_row.row_count(), by_column.row_count());
    for (std::size_t row = 0; row < shape.rows; ++row) {
      ASSERT_EQ(std::memcmp(by_row.view()[row].data(), by_column.view()[row].data(),
                            shape.dim * sizeof(float)),
                0)
          << descr << ' ' << row;
    }
  }
}

TEST(RowReaderTest, TransposesAFileByColumns) {
  // The last has more rows than one tile.
  for (const Shape shape :
       {Shape{1, 1}, Shape{1, 5}, Shape{7, 1}, Shape{65, 33}, Shape{9'001, 300}}) {
    ExpectSameBits<float>("<f4", shape, [](double value) { return static_cast<float>(value); });
    ExpectSameBits<double>("<f8", shape, [](double value) { return value; });
    ExpectSameBits<std::uint16_t>("<f2", shape, [](double value) {
      return static_cast<std::uint16_t>(0x3000 + (static_cast<int>(value * 1000) & 0xFFF));
    });
  }
}

TEST(RowReaderTest, NamesTheRowOfAFileByColumns) {
  std::vector<float> numbers(5 * 3, 1);
  numbers[std::size_t{3} * 3 + 2] = std::numeric_limits<float>::quiet_NaN();
  const std::string file = NumPyFile<float>("<f4", {5, 3}, numbers, true);
  MemorySource source("v.npy", file);
  BufferedReader in(source);
  const absl::StatusOr<VectorLayout> layout = ReadVectorLayout(in, "", Limits{});
  ASSERT_TRUE(layout.ok()) << layout.status();
  VectorFacts facts;
  EXPECT_EQ(CheckRows(in, *layout, {}, facts).message(),
            "v.npy: row 3 holds NaN at column 2; vectors must be finite (1 of 5 rows is affected)");
}

}  // namespace
}  // namespace simile::data
