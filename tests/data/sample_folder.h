#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "files/scratch_folder.h"

namespace simile::data {

// A .npy file of fp32 rows [numbers.size() / dim, dim].
inline std::string NpyFile(const std::vector<float>& numbers, std::size_t dim) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(numbers.size() / dim) + ", " + std::to_string(dim) + "), }";
  header.resize(117, ' ');
  std::string file = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n";
  file.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
  return file;
}

// A collection with a file of every role: three items, two users, what they saw, and settings.
struct SampleFile {
  std::string name;
  std::string bytes;
};
inline std::vector<SampleFile> SampleFiles() {
  return {{"collection.json", "{\"lookup_fields\": [\"title\"]}\n"},
          {"media/content_vectors.npy", NpyFile({1, 0, 0, 1, 3, 4}, 2)},
          {"media/metadata.jsonl",
           "{\"id\": \"a\", \"title\": \"First\"}\n{\"id\": \"b\", \"title\": \"Second\"}\n"
           "{\"id\": \"c\", \"title\": \"Third\"}\n"},
          {"users/user_ids.json", "[\"u\", \"v\"]\n"},
          {"users/preference_vectors.npy", NpyFile({1, 1, 0, 1}, 2)},
          {"users/interactions.jsonl", "{\"user_id\": \"u\", \"id\": \"b\"}\n"}};
}

inline void WriteSample(const ScratchFolder& folder) {
  for (const SampleFile& file : SampleFiles()) folder.Write(file.name, file.bytes);
}

}  // namespace simile::data
