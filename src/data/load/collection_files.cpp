#include "data/load/collection_files.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/nearest_name.h"
#include "data/formats/buffered_reader.h"
#include "data/formats/json_reader.h"
#include "data/formats/text_shape.h"
#include "data/formats/vector_format.h"
#include "data/load/folder.h"
#include "data/load/folder_files.h"
#include "data/payload/field_type.h"

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

// A key of collection.json with a string value, and whether the value names a file.
struct TextKey {
  std::string_view key;
  std::string CollectionFiles::*member;
  bool names_file;
};

constexpr std::array<TextKey, 7> kTextKeys = {{
    {"vectors", &CollectionFiles::vectors, true},
    {"payload", &CollectionFiles::payload, true},
    {"user_ids", &CollectionFiles::user_ids, true},
    {"user_vectors", &CollectionFiles::user_vectors, true},
    {"interactions", &CollectionFiles::interactions, true},
    {"id_field", &CollectionFiles::id_field, false},
    {"tensor", &CollectionFiles::tensor, false},
}};

absl::Status RefuseKey(const BufferedReader& in, std::string_view key) {
  std::vector<std::string> known;
  known.reserve(kTextKeys.size() + 5);
  for (const TextKey& text_key : kTextKeys) known.emplace_back(text_key.key);
  known.emplace_back("metric");
  known.emplace_back("on_zero_row");
  known.emplace_back("lookup_fields");
  known.emplace_back("field_types");
  known.emplace_back("separators");
  const std::string nearest = base::NearestName(key, known);
  return Refuse(
      in, fmt::format("unknown key {};{} keys are {}", base::Quoted(key),
                      nearest.empty() ? std::string()
                                      : fmt::format(" did you mean {}?", base::Quoted(nearest)),
                      fmt::join(known, ", ")));
}

absl::StatusOr<std::string> ReadTextValue(const BufferedReader& in, std::string_view key,
                                          const PayloadValue& value) {
  const auto* const text = std::get_if<std::string>(&value.value);
  if (text == nullptr) {
    return Refuse(in,
                  fmt::format("{} is {}; a string is needed", base::Quoted(key), Describe(value)));
  }
  if (text->empty()) return Refuse(in, fmt::format("{} is empty; leave it out", base::Quoted(key)));
  return *text;
}

absl::StatusOr<Metric> ReadMetric(const BufferedReader& in, const PayloadValue& value) {
  const absl::StatusOr<std::string> text = ReadTextValue(in, "metric", value);
  if (!text.ok()) return text.status();
  for (const Metric metric : {Metric::kCosine, Metric::kDot}) {
    if (*text == NameOf(metric)) return metric;
  }
  return Refuse(
      in, fmt::format("\"metric\" is {}; \"cosine\" or \"dot\" is needed", base::Quoted(*text)));
}

absl::StatusOr<OnZeroRow> ReadOnZeroRow(const BufferedReader& in, const PayloadValue& value) {
  const absl::StatusOr<std::string> text = ReadTextValue(in, "on_zero_row", value);
  if (!text.ok()) return text.status();
  if (*text == "refuse") return OnZeroRow::kRefuse;
  if (*text == "skip") return OnZeroRow::kSkip;
  return Refuse(in, fmt::format("\"on_zero_row\" is {}; \"refuse\" or \"skip\" is needed",
                                base::Quoted(*text)));
}

absl::StatusOr<std::vector<std::string>> ReadLookupFields(const BufferedReader& in,
                                                          const PayloadValue& value) {
  const auto* const list = std::get_if<PayloadList>(&value.value);
  if (list == nullptr || list->empty()) {
    return Refuse(in, fmt::format("\"lookup_fields\" is {}; a list of field names is needed",
                                  list == nullptr ? Describe(value) : "empty"));
  }
  std::vector<std::string> fields;
  for (const PayloadValue& item : *list) {
    absl::StatusOr<std::string> field = ReadTextValue(in, "lookup_fields", item);
    if (!field.ok()) return field.status();
    fields.push_back(*std::move(field));
  }
  return fields;
}

absl::StatusOr<std::vector<NamedFieldType>> ReadFieldTypes(const BufferedReader& in,
                                                           const PayloadValue& value) {
  const auto* const object = std::get_if<PayloadObject>(&value.value);
  if (object == nullptr) {
    return Refuse(in, fmt::format("\"field_types\" is {}; an object of types by field is needed",
                                  Describe(value)));
  }
  std::vector<NamedFieldType> types;
  for (const auto& [field, type_value] : *object) {
    const absl::StatusOr<std::string> name =
        ReadTextValue(in, fmt::format("field_types.{}", field), type_value);
    if (!name.ok()) return name.status();
    const std::optional<FieldType> type = ParseFieldType(*name);
    if (!type) {
      return Refuse(in,
                    fmt::format("\"field_types\" says {} is {}; types are {}", base::Quoted(field),
                                base::Quoted(*name), fmt::join(FieldTypeNames(), ", ")));
    }
    types.push_back({field, *type});
  }
  return types;
}

// A separator is taken as written, so one of white space alone would cut every sentence to words.
absl::StatusOr<std::vector<NamedSeparator>> ReadSeparators(const BufferedReader& in,
                                                           const PayloadValue& value) {
  constexpr std::size_t kSeparatorBytesMax = 8;
  const auto* const object = std::get_if<PayloadObject>(&value.value);
  if (object == nullptr) {
    return Refuse(in, fmt::format("\"separators\" is {}; an object of texts by field is needed, as "
                                  "in {{\"genres\": \"|\"}}",
                                  Describe(value)));
  }
  std::vector<NamedSeparator> separators;
  for (const auto& [field, text_value] : *object) {
    absl::StatusOr<std::string> text =
        ReadTextValue(in, fmt::format("separators.{}", field), text_value);
    if (!text.ok()) return text.status();
    if (text->size() > kSeparatorBytesMax || text->find_first_not_of(" \t") == std::string::npos) {
      return Refuse(in, fmt::format("\"separators\" says {} for {}; a separator has 1 to {} bytes, "
                                    "not all of them white space",
                                    base::Quoted(*text), base::Quoted(field), kSeparatorBytesMax));
    }
    separators.push_back({field, *std::move(text)});
  }
  return separators;
}

// A field whose texts are separated is a list of keywords.
absl::Status CheckSeparatedTypes(const BufferedReader& in, const CollectionFiles& files) {
  for (const NamedFieldType& named : files.field_types) {
    if (named.type == FieldType::kKeywords) continue;
    const auto separated = std::ranges::find(files.separators, named.field, &NamedSeparator::field);
    if (separated == files.separators.end()) continue;
    return Refuse(in, fmt::format("\"field_types\" says {0} is {1}, and \"separators\" makes it a "
                                  "list of keywords; leave one of them out",
                                  base::Quoted(named.field), base::Quoted(NameOf(named.type))));
  }
  return absl::OkStatus();
}

absl::Status StoreMember(const BufferedReader& in, const std::string& key,
                         const PayloadValue& value, CollectionFiles& files) {
  for (const TextKey& known : kTextKeys) {
    if (key != known.key) continue;
    absl::StatusOr<std::string> text = ReadTextValue(in, key, value);
    if (!text.ok()) return text.status();
    if (known.names_file && !Folder::IsInside(*text)) {
      return Refuse(in,
                    fmt::format("{} is {}; name a file inside the collection's folder, relative "
                                "to it",
                                base::Quoted(key), base::Quoted(*text)));
    }
    files.*known.member = *std::move(text);
    return absl::OkStatus();
  }
  if (key == "metric") {
    const absl::StatusOr<Metric> metric = ReadMetric(in, value);
    if (metric.ok()) files.metric = *metric;
    return metric.status();
  }
  if (key == "on_zero_row") {
    const absl::StatusOr<OnZeroRow> on_zero_row = ReadOnZeroRow(in, value);
    if (on_zero_row.ok()) files.on_zero_row = *on_zero_row;
    return on_zero_row.status();
  }
  if (key == "lookup_fields") {
    absl::StatusOr<std::vector<std::string>> fields = ReadLookupFields(in, value);
    if (!fields.ok()) return fields.status();
    files.lookup_fields = *std::move(fields);
    return absl::OkStatus();
  }
  if (key == "field_types") {
    absl::StatusOr<std::vector<NamedFieldType>> types = ReadFieldTypes(in, value);
    if (!types.ok()) return types.status();
    files.field_types = *std::move(types);
    return absl::OkStatus();
  }
  if (key == "separators") {
    absl::StatusOr<std::vector<NamedSeparator>> separators = ReadSeparators(in, value);
    if (!separators.ok()) return separators.status();
    files.separators = *std::move(separators);
    return absl::OkStatus();
  }
  return RefuseKey(in, key);
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

bool HasPartEnding(const CollectionPart& part, std::string_view name) {
  return part.ending.empty() ? FindVectorFormat(name) != nullptr : name.ends_with(part.ending);
}

absl::StatusOr<CollectionFiles> ReadCollectionJson(BufferedReader& in, const Limits& limits) {
  if (in.size() > limits.collection_json_bytes_max) {
    return Refuse(in, fmt::format("is {} bytes long; at most {} are read", base::Grouped(in.size()),
                                  base::Grouped(limits.collection_json_bytes_max)));
  }
  const absl::StatusOr<std::string_view> begin = in.Peek();
  if (!begin.ok()) return begin.status();
  if (absl::Status data = CheckHoldsData(in, ClassifyText(*begin)); !data.ok()) return data;
  JsonReader json(in.display_name(), {.depth_max = limits.json_depth_max,
                                      .text_bytes_max = limits.collection_json_bytes_max});
  json.Begin(in);
  const absl::StatusOr<PayloadObject> object = ReadJsonObject(json);
  if (!object.ok()) return object.status();
  CollectionFiles files;
  for (const auto& [key, value] : *object) {
    if (absl::Status status = StoreMember(in, key, value, files); !status.ok()) return status;
  }
  if (absl::Status status = CheckSeparatedTypes(in, files); !status.ok()) return status;
  return files;
}

std::string_view NameOf(Metric metric) { return metric == Metric::kCosine ? "cosine" : "dot"; }

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
