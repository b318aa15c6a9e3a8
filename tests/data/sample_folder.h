#pragma once

#include <string>
#include <vector>

#include "files/npy_file.h"
#include "files/scratch_folder.h"

namespace simile::data {

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
