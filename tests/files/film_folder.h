#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "files/npy_file.h"

namespace simile {

// Writes a collection: vectors [row_count, 2] fp32, of which row r points to (r + 1, shift), and
// titles. Returns the folder.
inline std::filesystem::path WriteFilmFolder(const std::filesystem::path& folder,
                                             std::size_t row_count, float shift) {
  std::filesystem::create_directories(folder);
  std::vector<float> vectors;
  std::ofstream payload(folder / "metadata.jsonl");
  for (std::size_t row = 0; row < row_count; ++row) {
    vectors.insert(vectors.end(), {static_cast<float>(row + 1), shift});
    payload << "{\"id\": \"film-" << row << "\", \"title\": \"Film " << row << "\"}\n";
  }
  std::ofstream(folder / "content_vectors.npy", std::ios::binary) << NpyFile(vectors, 2);
  return folder;
}

}  // namespace simile
