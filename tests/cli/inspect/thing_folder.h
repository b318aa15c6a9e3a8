#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/inspect/folder_content.h"

namespace simile::cli {

inline constexpr std::size_t kThings = 50;
inline constexpr std::size_t kUsers = 8;
inline constexpr std::size_t kDim = 16;
inline constexpr std::size_t kInteractions = 40;

inline constexpr const char* kVectorsNpy = "content_vectors.npy";
inline constexpr const char* kVectorsSafetensors = "content_vectors.safetensors";
inline constexpr const char* kPayload = "metadata.jsonl";
inline constexpr const char* kUserIds = "user_ids.json";
inline constexpr const char* kUserVectors = "preference_vectors.npy";
inline constexpr const char* kInteractionLines = "interactions.jsonl";
inline constexpr const char* kSettings = "collection.json";

// A folder that loads without a note, with a file of every role: kThings items, kUsers users and
// kInteractions lines of what they saw.
FolderContent ThingFolder();
// The same with content_vectors.safetensors in place of content_vectors.npy.
FolderContent ThingFolderOfSafetensors();

// Numbers that each format of vectors holds exactly, row by row: the vectors of the items, or
// users.
std::vector<double> ThingNumbers();
std::vector<double> UserNumbers();

enum class Stored : std::uint8_t { kFloat16, kBfloat16, kFloat32, kFloat64 };
std::string Encode(Stored type, const std::vector<double>& numbers);

// A .npy file with this dictionary as its header, padded as NumPy pads it.
std::string MakeNpy(std::string_view dictionary, std::string_view data, char version = 1);
// The dictionary that NumPy writes.
std::string NpyDictionary(std::string_view descr, std::string_view shape);
// A .npy file as NumPy writes it. `type` is not kBfloat16, which NumPy lacks.
std::string MakeNpy(Stored type, const std::vector<double>& numbers, std::size_t dim);

// A .safetensors file with this header.
std::string MakeSafetensors(std::string_view header, std::string_view data);
std::string SafetensorsHeader(std::string_view dtype, std::string_view shape, std::size_t bytes);
// One tensor, "embeddings".
std::string MakeSafetensors(Stored type, const std::vector<double>& numbers, std::size_t dim);

// The lines of a text without their ends, and the text of lines, each ended by '\n'.
std::vector<std::string> SplitLines(const std::string& text);
std::string JoinLines(const std::vector<std::string>& lines);
// Line `n` (from 0) of metadata.jsonl, and of interactions.jsonl.
std::string PayloadLine(std::size_t n);
std::string InteractionLine(std::size_t n);

}  // namespace simile::cli
