#include "data/collection_parts.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "data/vector_format.h"

namespace simile::data {
namespace {

constexpr auto kVectorNames = std::to_array<std::string_view>({"content_vectors", "vectors"});
constexpr auto kVectorOthers = std::to_array<std::string_view>(
    {"embedding", "embeddings", "content_embeddings", "item_vectors", "item_embeddings", "vector"});
constexpr auto kPayloadNames = std::to_array<std::string_view>({"metadata.jsonl"});
constexpr auto kPayloadOthers = std::to_array<std::string_view>({"payload", "items"});
constexpr auto kUserIdNames = std::to_array<std::string_view>({"user_ids.json"});
constexpr auto kUserIdOthers = std::to_array<std::string_view>({"users", "userids", "user_id"});
constexpr auto kUserVectorNames = std::to_array<std::string_view>({"preference_vectors"});
constexpr auto kUserVectorOthers = std::to_array<std::string_view>(
    {"preferences", "user_vectors", "user_embeddings", "preference_embeddings"});
constexpr auto kInteractionNames = std::to_array<std::string_view>({"interactions.jsonl"});
constexpr auto kInteractionOthers =
    std::to_array<std::string_view>({"interaction", "events", "ratings"});

constexpr auto kParts = std::to_array<CollectionPart>({
    {FileRole::kVectors, "vectors", &CollectionFiles::vectors, "media/", kVectorNames,
     kVectorOthers, "vectors are read", "", ""},
    {FileRole::kPayload, "payload", &CollectionFiles::payload, "media/", kPayloadNames,
     kPayloadOthers, "payload is read", ".jsonl", ", one JSON object a line"},
    {FileRole::kUserIds, "user_ids", &CollectionFiles::user_ids, "users/", kUserIdNames,
     kUserIdOthers, "user ids are read", ".json", ", one JSON list"},
    {FileRole::kUserVectors, "user_vectors", &CollectionFiles::user_vectors, "users/",
     kUserVectorNames, kUserVectorOthers, "user vectors are read", "", ""},
    {FileRole::kInteractions, "interactions", &CollectionFiles::interactions, "users/",
     kInteractionNames, kInteractionOthers, "interactions are read", ".jsonl",
     ", one JSON object a line"},
});

}  // namespace

std::span<const CollectionPart> CollectionParts() { return kParts; }

const CollectionPart& PartOf(FileRole role) {
  return *std::ranges::find(kParts, role, &CollectionPart::role);
}

std::string_view NameOf(FileRole role) {
  return role == FileRole::kSettings ? "settings" : PartOf(role).key;
}

std::vector<std::string> UsualNames(const CollectionPart& part) {
  if (!part.ending.empty()) return {part.names.begin(), part.names.end()};
  std::vector<std::string> names;
  for (const VectorFormat& format : VectorFormats()) {
    for (const std::string_view name : part.names) {
      names.push_back(fmt::format("{}{}", name, format.ending));
    }
  }
  return names;
}

bool HasEndingOf(const CollectionPart& part, std::string_view name) {
  return part.ending.empty() ? FindVectorFormat(name) != nullptr : name.ends_with(part.ending);
}

}  // namespace simile::data
