#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

namespace simile {

// Writes a collection: vectors [row_count, 2] fp32, of which row r points to (r + 1, shift), and
// titles. Returns the folder.
inline std::filesystem::path WriteFilmFolder(const std::filesystem::path& folder,
                                             std::size_t row_count, float shift) {
  std::filesystem::create_directories(folder);
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  header.append(std::to_string(row_count)).append(", 2), }");
  header.resize(117, ' ');
  header += '\n';
  std::ofstream vectors(folder / "content_vectors.npy", std::ios::binary);
  vectors << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << header;
  std::ofstream payload(folder / "metadata.jsonl");
  for (std::size_t row = 0; row < row_count; ++row) {
    const float values[2] = {static_cast<float>(row + 1), shift};
    vectors.write(reinterpret_cast<const char*>(values), sizeof(values));
    payload << "{\"id\": \"film-" << row << "\", \"title\": \"Film " << row << "\"}\n";
  }
  return folder;
}

}  // namespace simile
