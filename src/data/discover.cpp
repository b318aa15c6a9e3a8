#include "data/discover.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/message_text.h"
#include "data/buffered_reader.h"
#include "data/collection_json.h"
#include "data/collection_parts.h"
#include "data/folder_files.h"
#include "data/vector_format.h"

namespace simile::data {
namespace {

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
absl::Status FindPart(const Folder& folder, const CollectionPart& part, std::string& found) {
  for (const std::string_view subfolder : {std::string_view(), part.subfolder}) {
    for (const std::string& name : UsualNames(part)) {
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

absl::Status CheckParts(const Folder& folder, const CollectionFiles& files) {
  if (files.vectors.empty()) {
    return absl::NotFoundError(
        fmt::format("no vectors in the folder: looked for {}, here and in media/; {}",
                    fmt::join(UsualNames(PartOf(FileRole::kVectors)), ", "),
                    AdviceWithoutVectors(folder, files)));
  }
  if (files.user_vectors.empty() && !files.user_ids.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: has no vectors beside it; {} with one row an id is needed{}",
                    files.user_ids, UsualNames(PartOf(FileRole::kUserVectors)).front(),
                    AdviceWithoutPart(folder, PartOf(FileRole::kUserVectors))));
  }
  if (files.user_ids.empty() && !files.user_vectors.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: has no ids beside it; {} with one id a row is needed{}",
                    files.user_vectors, UsualNames(PartOf(FileRole::kUserIds)).front(),
                    AdviceWithoutPart(folder, PartOf(FileRole::kUserIds))));
  }
  return absl::OkStatus();
}

// Refuses settings that would have no effect.
absl::Status CheckSettings(const CollectionFiles& files) {
  const auto needs_payload = [](std::string_view key, std::string_view field) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: {} names {}, but there is no payload to have it; {} is needed", kCollectionJson,
        base::Quoted(key), base::Quoted(field), UsualNames(PartOf(FileRole::kPayload)).front()));
  };
  if (files.payload.empty()) {
    if (!files.id_field.empty()) return needs_payload("id_field", files.id_field);
    if (!files.lookup_fields.empty()) {
      return needs_payload("lookup_fields", files.lookup_fields.front());
    }
    if (!files.field_types.empty()) {
      return needs_payload("field_types", files.field_types.front().field);
    }
    if (!files.separators.empty()) {
      return needs_payload("separators", files.separators.front().field);
    }
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
  for (const CollectionPart& part : CollectionParts()) {
    std::string& found = (*files).*part.member;
    if (found.empty()) {
      if (absl::Status status = FindPart(folder, part, found); !status.ok()) return status;
    } else if (!folder.Has(found)) {
      return absl::NotFoundError(fmt::format("{}: \"{}\" names {}, which is not in the folder",
                                             kCollectionJson, part.key, base::Quoted(found)));
    }
  }
  if (absl::Status status = CheckParts(folder, *files); !status.ok()) return status;
  if (absl::Status status = CheckSettings(*files); !status.ok()) return status;
  return files;
}

}  // namespace simile::data
