#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "backend/cpu/thread_pool.h"
#include "bench/engine_options.h"
#include "data/matrix.h"

namespace simile::bench {

// The rows and queries of a bench.
struct BenchData {
  data::Matrix rows;     // unit length for cosine
  data::Matrix queries;  // likewise
  std::string description;
};

// Reads the files or draws the vectors, as the options say.
// Errors: of the readers, beginning with the file's name; kInvalidArgument when rows and queries do
// not go together, or a batch wants more queries than there are.
absl::StatusOr<BenchData> GetData(const EngineOptions& options, backend::cpu::ThreadPool& pool);

// Writes a float32 .npy file [row_count, dim].
absl::Status WriteNpy(const std::string& path, const MatrixView& matrix);
// Writes an int64 .npy file [row_count, values.size() / row_count].
absl::Status WriteNpy(const std::string& path, std::span<const std::int64_t> values,
                      std::size_t row_count);

}  // namespace simile::bench
