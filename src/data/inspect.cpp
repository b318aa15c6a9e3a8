#include "data/inspect.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "base/message_text.h"
#include "data/buffered_reader.h"
#include "data/collection_json.h"
#include "data/folder.h"
#include "data/id_list_reader.h"
#include "data/interactions_reader.h"
#include "data/json_value.h"
#include "data/payload_reader.h"
#include "data/plan.h"
#include "data/vector_format.h"
#include "data/vector_reader.h"

namespace simile::data {
namespace {

// The functions named Inspect add what they find, and return the error of a load.
void AddFact(Inspection& inspection, std::string label, std::string value) {
  inspection.facts.emplace_back(std::move(label), std::move(value));
}

std::string MetricName(Metric metric) { return metric == Metric::kCosine ? "cosine" : "dot"; }

absl::Status InspectVectors(BufferedReader& in, const Limits& limits, Inspection& inspection) {
  inspection.kind = "vectors";
  const absl::StatusOr<VectorLayout> layout = ReadVectorLayout(in, "", limits);
  if (!layout.ok()) return layout.status();
  AddFact(inspection, "rows", base::Grouped(layout->row_count));
  AddFact(inspection, "dimensions", base::Grouped(layout->dim));
  AddFact(inspection, "type", std::string(ElementName(layout->type)));
  LengthRange lengths;
  absl::Status status = CheckRows(in, *layout, Metric::kCosine, lengths);
  if (lengths.shortest <= lengths.longest) {
    AddFact(inspection, "lengths",
            fmt::format("{:.6g} to {:.6g}", lengths.shortest, lengths.longest));
  }
  return status;
}

void AddIds(const IdIndex& ids, Inspection& inspection) {
  if (ids.size() == 0) return;
  AddFact(inspection, "first id", base::Quoted(ids.Id(0)));
  AddFact(inspection, "last id", base::Quoted(ids.Id(static_cast<Row>(ids.size() - 1))));
}

absl::Status InspectPayload(BufferedReader& in, const Limits& limits, Inspection& inspection) {
  inspection.kind = "payload";
  const absl::StatusOr<PayloadFile> payload = ReadPayload(in, "", std::nullopt, limits);
  if (!payload.ok()) return payload.status();
  AddFact(inspection, "lines", base::Grouped(payload->table.row_count()));
  AddFact(inspection, "ids from",
          payload->id_field.empty() ? std::string("row numbers") : base::Quoted(payload->id_field));
  AddIds(payload->ids, inspection);
  for (const FieldInfo& field : payload->table.fields()) {
    AddFact(inspection, fmt::format("field {}", field.name),
            fmt::format("{}, in {}", field.type, base::Counted(field.rows, "row")));
  }
  return absl::OkStatus();
}

absl::Status InspectInteractions(BufferedReader& in, const Limits& limits, Inspection& inspection) {
  inspection.kind = "interactions";
  InteractionsReader reader(in, "", limits);
  std::optional<Interaction> first;
  Interaction interaction;
  while (true) {
    const absl::StatusOr<bool> found = reader.Next(interaction);
    if (!found.ok()) return found.status();
    if (!*found) break;
    if (!first) first = interaction;
  }
  AddFact(inspection, "lines", base::Grouped(reader.line()));
  if (!first) return absl::OkStatus();
  AddFact(
      inspection, "first",
      fmt::format("user {}, item {}", base::Quoted(first->user_id), base::Quoted(first->item_id)));
  AddFact(inspection, "last",
          fmt::format("user {}, item {}", base::Quoted(interaction.user_id),
                      base::Quoted(interaction.item_id)));
  return absl::OkStatus();
}

absl::Status InspectIds(BufferedReader& in, const Limits& limits, Inspection& inspection) {
  inspection.kind = "ids";
  const absl::StatusOr<IdIndex> ids = ReadIdList(in, std::nullopt, limits);
  if (!ids.ok()) return ids.status();
  AddFact(inspection, "ids", base::Grouped(ids->size()));
  AddIds(*ids, inspection);
  return absl::OkStatus();
}

// Adds the collection's files and settings.
void AddFiles(const CollectionFiles& files, Inspection& inspection) {
  const auto add = [&](const char* label, const std::string& value) {
    if (!value.empty()) AddFact(inspection, label, value);
  };
  add("vectors", files.vectors);
  add("payload", files.payload);
  add("user ids", files.user_ids);
  add("user vectors", files.user_vectors);
  add("interactions", files.interactions);
  add("metric", MetricName(files.metric));
  add("id field", files.id_field);
  add("tensor", files.tensor);
  add("lookup fields", fmt::format("{}", fmt::join(files.lookup_fields, ", ")));
}

absl::Status InspectSettings(BufferedReader& in, const Limits& limits, Inspection& inspection) {
  inspection.kind = "collection settings";
  const absl::StatusOr<CollectionFiles> files = ReadCollectionJson(in, limits);
  if (files.ok()) AddFiles(*files, inspection);
  return files.status();
}

Inspection InspectFolder(const std::filesystem::path& path, const Limits& limits) {
  Inspection inspection{.kind = "collection", .facts = {}, .status = {}};
  const absl::StatusOr<DatasetPlan> plan = PlanDataset(path, limits);
  inspection.status = plan.status();
  if (!plan.ok()) return inspection;
  AddFiles(plan->files, inspection);
  AddFact(inspection, "rows", base::Grouped(plan->row_count));
  AddFact(inspection, "dimensions", base::Grouped(plan->dim));
  AddFact(inspection, "users", base::Grouped(plan->user_count));
  AddFact(inspection, "bytes in memory",
          fmt::format("{} (vectors {}, payload {}, users {})", base::Grouped(plan->total_bytes()),
                      base::Grouped(plan->vector_bytes),
                      base::Grouped(plan->payload_bytes + plan->filter_bytes),
                      base::Grouped(plan->user_bytes)));
  return inspection;
}

// Interactions and payload share an ending; only interactions name a user in their first line.
absl::StatusOr<bool> LooksLikeInteractions(const Folder& folder, const std::string& display_name,
                                           const Limits& limits) {
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = folder.OpenFile(display_name);
  if (!source.ok()) return source.status();
  BufferedReader in(**source);
  JsonlReader lines(in, limits);
  PayloadObject object;
  const absl::StatusOr<bool> found = lines.Next(object);
  return found.ok() && *found && FindMember(object, "user_id") != nullptr;
}

}  // namespace

absl::StatusOr<Inspection> InspectFile(const std::filesystem::path& path, const Limits& limits) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return InspectFolder(path, limits);

  // Opened as a load opens it, so that a link out of the folder is refused.
  const std::string display_name = path.filename().string();
  if (!Folder::IsInside(display_name)) {
    return absl::InvalidArgumentError("no file is named; give a file or a folder");
  }
  const absl::StatusOr<Folder> folder =
      Folder::Open(path.has_parent_path() ? path.parent_path() : ".");
  if (!folder.ok()) return folder.status();
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = folder->OpenFile(display_name);
  if (!source.ok()) return source.status();
  BufferedReader in(**source);

  Inspection inspection;
  AddFact(inspection, "file bytes", base::Grouped(in.size()));
  if (FindVectorFormat(display_name) != nullptr) {
    inspection.status = InspectVectors(in, limits, inspection);
  } else if (display_name.ends_with(".jsonl")) {
    const absl::StatusOr<bool> interactions = LooksLikeInteractions(*folder, display_name, limits);
    if (!interactions.ok()) return interactions.status();
    inspection.status = *interactions ? InspectInteractions(in, limits, inspection)
                                      : InspectPayload(in, limits, inspection);
  } else if (display_name == "collection.json") {
    inspection.status = InspectSettings(in, limits, inspection);
  } else if (display_name.ends_with(".json")) {
    inspection.status = InspectIds(in, limits, inspection);
  } else {
    std::string endings;
    for (const VectorFormat& format : VectorFormats())
      endings += fmt::format("{}, ", format.ending);
    return Refuse(
        in, fmt::format("is of no kind that is read here: {}.jsonl, .json, or a folder", endings));
  }
  return inspection;
}

}  // namespace simile::data
