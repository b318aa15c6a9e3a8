// A file that holds column after column gives the matrix of the same file row after row.
#include "data/row_reader.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "data/byte_source.h"
#include "data/vector_format.h"
#include "data/vector_reader.h"
#include "simile/limits.h"

namespace simile::data {
namespace {

struct Shape {
  std::size_t rows;
  std::size_t dim;
};

// numbers  [rows, dim], of which a file by columns holds the transpose
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

Matrix Read(const std::string& file, Metric metric) {
  MemorySource source("v.npy", file);
  BufferedReader in(source);
  const absl::StatusOr<VectorLayout> layout = ReadVectorLayout(in, "", Limits{});
  EXPECT_TRUE(layout.ok()) << layout.status();
  VectorFacts facts;
  absl::StatusOr<Matrix> matrix = ReadMatrix(in, *layout, {.metric = metric}, facts);
  EXPECT_TRUE(matrix.ok()) << matrix.status();
  return *std::move(matrix);
}

template <typename Number, typename FromFloat>
void ExpectSameBits(const char* descr, const Shape& shape, FromFloat from_float) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  std::vector<Number> numbers(shape.rows * shape.dim);
  for (Number& number : numbers) number = from_float(normal(random));
  for (const Metric metric : {Metric::kCosine, Metric::kDot}) {
    const Matrix by_row = Read(NumPyFile(descr, shape, numbers, false), metric);
    const Matrix by_column = Read(NumPyFile(descr, shape, numbers, true), metric);
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
