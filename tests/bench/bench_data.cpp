#include "bench/bench_data.h"

#include <bit>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "bench/synthetic_rows.h"
#include "data/formats/buffered_reader.h"
#include "data/formats/vector_format.h"
#include "data/formats/vector_reader.h"
#include "data/load/folder.h"

namespace simile::bench {
namespace {

absl::StatusOr<data::Matrix> ReadVectors(const std::string& path, Metric metric) {
  std::filesystem::path absolute = std::filesystem::absolute(path);
  const absl::StatusOr<data::Folder> folder = data::Folder::Open(absolute.parent_path());
  if (!folder.ok()) return folder.status();
  const auto source = folder->OpenFile(absolute.filename().string());
  if (!source.ok()) return source.status();
  data::BufferedReader reader(**source);
  const auto layout = data::ReadVectorLayout(reader, "", Limits());
  if (!layout.ok()) return layout.status();
  data::VectorFacts facts;
  return data::ReadMatrix(reader, *layout, {.metric = metric}, facts);
}

absl::StatusOr<BenchData> ReadData(const EngineOptions& options) {
  auto rows = ReadVectors(options.vectors_path, options.metric_value());
  if (!rows.ok()) return rows.status();
  auto queries = ReadVectors(options.queries_path, options.metric_value());
  if (!queries.ok()) return queries.status();
  if (rows->dim() != queries->dim()) {
    return absl::InvalidArgumentError(
        fmt::format("{} has {} dimensions, {} has {}; they must agree", options.queries_path,
                    queries->dim(), options.vectors_path, rows->dim()));
  }
  return BenchData{*std::move(rows), *std::move(queries),
                   std::filesystem::path(options.vectors_path).filename().string()};
}

absl::StatusOr<BenchData> DrawData(const EngineOptions& options, backend::cpu::ThreadPool& pool) {
  const Spread spread = options.synthetic == "isotropic" ? Spread::kIsotropic : Spread::kClustered;
  const SyntheticRows source(spread, options.dim, options.seed, options.norm_spread);
  auto rows = source.Draw(0, options.row_count, pool);
  if (!rows.ok()) return rows.status();
  auto queries = source.Draw(SyntheticRows::kFirstQuery, options.query_count, pool);
  if (!queries.ok()) return queries.status();
  std::string description = fmt::format("{}, seed {}", options.synthetic, options.seed);
  if (options.norm_spread != 1) {
    description += fmt::format(", lengths over a factor of {}", options.norm_spread);
  }
  return BenchData{*std::move(rows), *std::move(queries), std::move(description)};
}

// The header of a version 1.0 file: magic, version, length, then a dictionary padded with blanks so
// that the data begins at a multiple of 64 (NumPy's NEP 1).
std::string NpyHeader(const char* type, std::size_t row_count, std::size_t column_count) {
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}",
                                 type, row_count, column_count);
  constexpr std::size_t kBefore = 10;
  while ((kBefore + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

template <class WriteRows>
absl::Status WriteFile(const std::string& path, const std::string& header, WriteRows write_rows) {
  static_assert(std::endian::native == std::endian::little);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(header.data(), static_cast<std::streamsize>(header.size()));
  write_rows(out);
  if (!out.flush()) return absl::UnavailableError(fmt::format("cannot write {}", path));
  return absl::OkStatus();
}

template <class T>
void WriteValues(std::ofstream& out, std::span<const T> values) {
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size_bytes()));
}

}  // namespace

absl::StatusOr<BenchData> GetData(const EngineOptions& options, backend::cpu::ThreadPool& pool) {
  absl::StatusOr<BenchData> data =
      options.synthetic.empty() ? ReadData(options) : DrawData(options, pool);
  if (data.ok() && !options.saves() && data->queries.row_count() < options.batch_max()) {
    return absl::InvalidArgumentError(
        fmt::format("a batch of {} needs as many queries, and there are {}; give smaller --batch",
                    base::Grouped(options.batch_max()), base::Grouped(data->queries.row_count())));
  }
  return data;
}

absl::Status WriteNpy(const std::string& path, const MatrixView& matrix) {
  return WriteFile(path, NpyHeader("<f4", matrix.row_count(), matrix.dim()),
                   [&](std::ofstream& out) {
                     for (std::size_t row = 0; row < matrix.row_count(); ++row) {
                       WriteValues(out, matrix[row]);
                     }
                   });
}

absl::Status WriteNpy(const std::string& path, std::span<const std::int64_t> values,
                      std::size_t row_count) {
  return WriteFile(path, NpyHeader("<i8", row_count, row_count > 0 ? values.size() / row_count : 0),
                   [&](std::ofstream& out) { WriteValues(out, values); });
}

}  // namespace simile::bench
