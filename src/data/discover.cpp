#include "data/discover.h"

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/message_text.h"
#include "data/buffered_reader.h"
#include "data/collection_json.h"
#include "data/vector_format.h"

namespace simile::data {
namespace {

constexpr const char* kCollectionJson = "collection.json";

// A part of a collection: its key in collection.json, the subfolder it may be in, its usual names.
struct Part {
  std::string_view key;
  std::string CollectionFiles::*member;
  std::string_view subfolder;
  std::span<const std::string_view> names;
  bool holds_vectors = false;  // names lack the ending; each format of vectors adds its own
};

constexpr std::array<std::string_view, 2> kVectorNames = {"content_vectors", "vectors"};
constexpr std::array<std::string_view, 1> kPayloadNames = {"metadata.jsonl"};
constexpr std::array<std::string_view, 1> kUserIdNames = {"user_ids.json"};
constexpr std::array<std::string_view, 1> kUserVectorNames = {"preference_vectors"};
constexpr std::array<std::string_view, 1> kInteractionNames = {"interactions.jsonl"};

constexpr std::array<Part, 5> kParts = {{
    {"vectors", &CollectionFiles::vectors, "media/", kVectorNames, true},
    {"payload", &CollectionFiles::payload, "media/", kPayloadNames},
    {"user_ids", &CollectionFiles::user_ids, "users/", kUserIdNames},
    {"user_vectors", &CollectionFiles::user_vectors, "users/", kUserVectorNames, true},
    {"interactions", &CollectionFiles::interactions, "users/", kInteractionNames},
}};

std::vector<std::string> VectorFileNames(std::span<const std::string_view> names) {
  std::vector<std::string> files;
  for (const VectorFormat& format : VectorFormats()) {
    for (const std::string_view name : names)
      files.push_back(fmt::format("{}{}", name, format.ending));
  }
  return files;
}

absl::StatusOr<CollectionFiles> ReadNamedFiles(const Folder& folder, const Limits& limits) {
  if (!folder.Has(kCollectionJson)) return CollectionFiles{};
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = folder.OpenFile(kCollectionJson);
  if (!source.ok()) return source.status();
  BufferedReader reader(**source);
  absl::StatusOr<CollectionFiles> files = ReadCollectionJson(reader, limits);
  if (files.ok()) files->settings = kCollectionJson;
  return files;
}

// The file of a part that collection.json does not name; `found` stays empty when there is none.
absl::Status FindPart(const Folder& folder, const Part& part, std::string& found) {
  const std::vector<std::string> names =
      part.holds_vectors ? VectorFileNames(part.names)
                         : std::vector<std::string>(part.names.begin(), part.names.end());
  for (const std::string_view subfolder : {std::string_view(), part.subfolder}) {
    for (const std::string& name : names) {
      std::string candidate = fmt::format("{}{}", subfolder, name);
      if (!folder.Has(candidate)) continue;
      if (!found.empty()) {
        return absl::InvalidArgumentError(
            fmt::format("{}: {} is there, too; keep one of them, or name it in {}: \"{}\": \"{}\"",
                        found, candidate, kCollectionJson, part.key, found));
      }
      found = std::move(candidate);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckParts(const CollectionFiles& files) {
  if (files.vectors.empty()) {
    return absl::NotFoundError(
        fmt::format("no vectors in the folder: looked for {}, here and in media/; another name can "
                    "be given in {}: \"vectors\"",
                    fmt::join(VectorFileNames(kVectorNames), ", "), kCollectionJson));
  }
  if (files.user_vectors.empty() && !files.user_ids.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: has no vectors beside it; {} with one row an id is needed", files.user_ids,
                    VectorFileNames(kUserVectorNames).front()));
  }
  if (files.user_ids.empty() && !files.user_vectors.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: has no ids beside it; {} with one id a row is needed", files.user_vectors,
                    kUserIdNames[0]));
  }
  return absl::OkStatus();
}

// Refuses settings that would have no effect.
absl::Status CheckSettings(const CollectionFiles& files) {
  if (!files.id_field.empty() && files.payload.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: \"id_field\" is {}, but there is no payload to have it; {} is needed",
                    kCollectionJson, base::Quoted(files.id_field), kPayloadNames[0]));
  }
  const VectorFormat* const format = FindVectorFormat(files.vectors);
  if (!files.tensor.empty() && (format == nullptr || !format->names_tensors)) {
    return absl::InvalidArgumentError(
        fmt::format("{}: \"tensor\" is {}, but {} is no .safetensors file; leave it out",
                    kCollectionJson, base::Quoted(files.tensor), files.vectors));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CollectionFiles> DiscoverFiles(const Folder& folder,
                                              const std::filesystem::path& path,
                                              const Limits& limits) {
  absl::StatusOr<CollectionFiles> files = ReadNamedFiles(folder, limits);
  if (!files.ok()) return files.status();
  files->folder = path;
  for (const Part& part : kParts) {
    std::string& found = (*files).*part.member;
    if (found.empty()) {
      if (absl::Status status = FindPart(folder, part, found); !status.ok()) return status;
    } else if (!folder.Has(found)) {
      return absl::NotFoundError(fmt::format("{}: \"{}\" names {}, which is not in the folder",
                                             kCollectionJson, part.key, base::Quoted(found)));
    }
  }
  if (absl::Status status = CheckParts(*files); !status.ok()) return status;
  if (absl::Status status = CheckSettings(*files); !status.ok()) return status;
  return files;
}

}  // namespace simile::data
