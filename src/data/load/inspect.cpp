#include "data/load/inspect.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "data/faults.h"
#include "data/formats/buffered_reader.h"
#include "data/formats/json_reader.h"
#include "data/formats/vector_format.h"
#include "data/formats/vector_reader.h"
#include "data/load/collection_files.h"
#include "data/load/folder.h"
#include "data/load/id_list_reader.h"
#include "data/load/interactions_reader.h"
#include "data/load/plan.h"
#include "data/payload/payload_reader.h"

namespace simile::data {
namespace {

PayloadValue WholeNumber(std::uint64_t number) {
  return PayloadValue{static_cast<std::int64_t>(number)};
}

void AddText(Inspection& inspection, std::string key, const std::string& text) {
  inspection.facts.push_back({std::move(key), PayloadValue{text}, text});
}

void AddCount(Inspection& inspection, std::string key, std::uint64_t count) {
  inspection.facts.push_back({std::move(key), WholeNumber(count), base::Grouped(count)});
}

void AddLengths(Inspection& inspection, std::string key, const VectorFacts& vectors) {
  if (vectors.shortest > vectors.longest) return;  // no row was valid
  inspection.facts.push_back({std::move(key),
                              PayloadValue{PayloadObject{
                                  {"shortest", PayloadValue{vectors.shortest}},
                                  {"longest", PayloadValue{vectors.longest}},
                              }},
                              fmt::format("{:.6g} to {:.6g}", vectors.shortest, vectors.longest)});
}

void AddIds(Inspection& inspection, const std::string& first, const std::string& last) {
  inspection.facts.push_back({"first_id", PayloadValue{first}, base::Quoted(first)});
  inspection.facts.push_back({"last_id", PayloadValue{last}, base::Quoted(last)});
}

//   id_field  empty: null, since ids are row numbers
void AddIdField(Inspection& inspection, const std::string& id_field) {
  inspection.facts.push_back(
      {"ids_from", id_field.empty() ? PayloadValue{} : PayloadValue{id_field},
       id_field.empty() ? std::string("row numbers") : base::Quoted(id_field)});
}

void AddIndex(Inspection& inspection, const IdIndex& ids) {
  if (ids.size() == 0) return;
  AddIds(inspection, ids.Id(0), ids.Id(static_cast<Row>(ids.size() - 1)));
}

// The functions named Inspect add what they find, and return the error of a load.
absl::Status InspectVectors(BufferedReader& in, const Limits& limits, bool quick,
                            Inspection& inspection) {
  inspection.kind = "vectors";
  const absl::StatusOr<VectorLayout> layout = ReadVectorLayout(in, "", limits);
  if (!layout.ok()) return layout.status();
  AddCount(inspection, "rows", layout->row_count);
  AddCount(inspection, "dimensions", layout->dim);
  AddText(inspection, "type", std::string(ElementName(layout->type)));
  NoteTransposed(in.display_name(), *layout, inspection.notes);
  if (quick) {
    inspection.unchecked.emplace_back("the rows");
    return absl::OkStatus();
  }
  VectorFacts vectors;
  absl::Status status = CheckRows(in, *layout, {}, vectors);
  AddLengths(inspection, "lengths", vectors);
  return status;
}

absl::Status InspectPayload(BufferedReader& in, const Limits& limits, Inspection& inspection) {
  inspection.kind = "payload";
  const absl::StatusOr<PayloadFile> payload = ReadPayload(
      in, {.id_field = {}, .expected = {}, .fields = {}, .keep = Keep::kNothing}, limits);
  if (!payload.ok()) return payload.status();
  AddCount(inspection, "lines", payload->ids.size());
  AddIdField(inspection, payload->id_field);
  AddIndex(inspection, payload->ids);
  const std::span<const FieldInfo> fields = payload->table.fields();
  inspection.fields.assign(fields.begin(), fields.end());
  inspection.notes = payload->notes;
  return absl::OkStatus();
}

absl::Status InspectInteractions(BufferedReader& in, const Limits& limits, Inspection& inspection) {
  inspection.kind = "interactions";
  InteractionsReader reader(in, "", limits);
  std::optional<Interaction> first;
  Interaction last;
  const absl::Status status = reader.ReadAll([&](const Interaction& interaction) {
    if (!first) first = interaction;
    last = interaction;
  });
  if (!status.ok()) return status;
  AddCount(inspection, "lines", reader.lines().count());
  if (const std::string no_users = reader.NoUsersText(); !no_users.empty()) {
    inspection.notes.push_back(fmt::format("{}: {}", in.display_name(), no_users));
  }
  reader.lines().NoteBlankLines(inspection.notes);
  const auto add = [&](const char* key, const Interaction& line) {
    inspection.facts.push_back(
        {key,
         PayloadValue{PayloadObject{{"user_id", PayloadValue{line.user_id}},
                                    {"item_id", PayloadValue{line.item_id}}}},
         fmt::format("user {}, item {}", base::Quoted(line.user_id), base::Quoted(line.item_id))});
  };
  if (first) {
    add("first", *first);
    add("last", last);
  }
  return absl::OkStatus();
}

absl::Status InspectIds(BufferedReader& in, const Limits& limits, Inspection& inspection) {
  inspection.kind = "ids";
  const absl::StatusOr<IdIndex> ids = ReadIdList(in, std::nullopt, limits);
  if (!ids.ok()) return ids.status();
  AddCount(inspection, "ids", ids->size());
  AddIndex(inspection, *ids);
  return absl::OkStatus();
}

void AddNamed(Inspection& inspection, std::string_view key, const std::string& value) {
  if (!value.empty()) AddText(inspection, std::string(key), value);
}

void AddSettings(const CollectionFiles& files, Inspection& inspection) {
  AddText(inspection, "metric", std::string(NameOf(files.metric)));
  AddText(inspection, "on_zero_row", files.on_zero_row == OnZeroRow::kRefuse ? "refuse" : "skip");
  AddNamed(inspection, "id_field", files.id_field);
  AddNamed(inspection, "tensor", files.tensor);
}

void AddLookupFields(const std::vector<std::string>& fields, Inspection& inspection) {
  if (fields.empty()) return;
  PayloadList list;
  for (const std::string& field : fields) list.push_back(PayloadValue{field});
  inspection.facts.push_back(
      {"lookup_fields", PayloadValue{std::move(list)}, fmt::format("{}", fmt::join(fields, ", "))});
}

absl::Status InspectSettings(BufferedReader& in, const Limits& limits, Inspection& inspection) {
  inspection.kind = "collection settings";
  const absl::StatusOr<CollectionFiles> files = ReadCollectionJson(in, limits);
  if (!files.ok()) return files.status();
  for (const CollectionPart& part : CollectionParts()) {
    AddNamed(inspection, part.key, (*files).*part.member);
  }
  AddSettings(*files, inspection);
  AddLookupFields(files->lookup_fields, inspection);
  return absl::OkStatus();
}

// What a load would read and a plan does not.
std::vector<std::string> ListUnchecked(const CollectionFiles& files) {
  std::vector<std::string> unchecked;
  const auto add = [&](const char* what, const std::string& file) {
    if (!file.empty()) unchecked.push_back(fmt::format("{} of {}", what, file));
  };
  add("the rows", files.vectors);
  add("the lines", files.payload);
  add("the ids", files.user_ids);
  add("the rows", files.user_vectors);
  add("the lines", files.interactions);
  if (!files.lookup_fields.empty() || !files.field_types.empty() || !files.separators.empty()) {
    add("the fields", files.settings);
  }
  if (!files.payload.empty() || !files.user_ids.empty()) {
    unchecked.emplace_back("counts across files");
  }
  return unchecked;
}

Inspection InspectFolder(const std::filesystem::path& path, const Limits& limits,
                         const InspectOptions& options) {
  Inspection inspection;
  inspection.kind = "collection";
  absl::StatusOr<DatasetPlan> planned = PlanDataset(path, limits);
  inspection.status = planned.status();
  if (!planned.ok()) return inspection;
  const DatasetPlan* const plan = &inspection.plan.emplace(*std::move(planned));
  inspection.listing = plan->listing;
  inspection.notes = std::move(inspection.listing.notes);
  inspection.left_out = std::move(inspection.listing.left_out);
  AddSettings(plan->files, inspection);
  AddCount(inspection, "rows", plan->row_count);
  AddCount(inspection, "dimensions", plan->dim);
  AddCount(inspection, "users", plan->user_count);
  if (options.quick) {
    AddLookupFields(plan->files.lookup_fields, inspection);
    inspection.unchecked = ListUnchecked(plan->files);
    return inspection;
  }
  absl::StatusOr<DatasetSummary> summary = CheckDataset(*plan, limits, options.progress);
  inspection.status = summary.status();
  if (!summary.ok()) return inspection;
  AddLengths(inspection, "lengths", summary->vectors);
  if (plan->user_count > 0) AddLengths(inspection, "user_lengths", summary->user_vectors);
  if (!plan->files.payload.empty()) AddIdField(inspection, summary->id_field);
  AddIds(inspection, summary->first_id, summary->last_id);
  AddLookupFields(summary->lookup_fields, inspection);
  if (const std::size_t skipped = summary->vectors.skipped_rows.size(); skipped > 0) {
    AddCount(inspection, "skipped_rows", skipped);
  }
  AddText(inspection, "content_id", summary->content_id);
  inspection.fields = std::move(summary->fields);
  inspection.notes = std::move(summary->notes);
  if (summary->interactions_all_unknown) {
    inspection.left_out.push_back(fmt::format("interactions: no line of {} names a known {}",
                                              plan->files.interactions,
                                              plan->user_count > 0 ? "user and item" : "item"));
  }
  return inspection;
}

// Interactions and payload share an ending; under another name than the usual one only interactions
// name a user in their first line.
absl::StatusOr<bool> LooksLikeInteractions(const Folder& folder, const std::string& display_name,
                                           const Limits& limits) {
  if (std::ranges::find(PartOf(FileRole::kInteractions).names, display_name) !=
      PartOf(FileRole::kInteractions).names.end()) {
    return true;
  }
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = folder.OpenFile(display_name);
  if (!source.ok()) return source.status();
  return FindMember(ReadFirstObject(**source, limits), "user_id") != nullptr;
}

// Inspects a file by the ending of its name. No kind is found for one that is not read here.
absl::Status InspectKind(const Folder& folder, BufferedReader& in, const Limits& limits, bool quick,
                         Inspection& inspection) {
  const std::string& name = in.display_name();
  if (FindVectorFormat(name) != nullptr) return InspectVectors(in, limits, quick, inspection);
  if (name == "collection.json") return InspectSettings(in, limits, inspection);
  const bool has_lines = name.ends_with(".jsonl");
  if (!has_lines && !name.ends_with(".json")) {
    std::string endings;
    for (const VectorFormat& format : VectorFormats())
      endings += fmt::format("{}, ", format.ending);
    return Refuse(
        in, fmt::format("is of no kind that is read here: {}.jsonl, .json, or a folder", endings));
  }
  if (quick) {
    inspection.kind = has_lines ? "lines" : "ids";
    inspection.unchecked.emplace_back(has_lines ? "the lines" : "the ids");
    return absl::OkStatus();
  }
  if (!has_lines) return InspectIds(in, limits, inspection);
  const absl::StatusOr<bool> interactions = LooksLikeInteractions(folder, name, limits);
  if (!interactions.ok()) return interactions.status();
  return *interactions ? InspectInteractions(in, limits, inspection)
                       : InspectPayload(in, limits, inspection);
}

}  // namespace

absl::StatusOr<Inspection> InspectFile(const std::filesystem::path& path, const Limits& limits,
                                       const InspectOptions& options) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return InspectFolder(path, limits, options);

  // Opened as a load opens it, so that a link out of the folder is refused.
  const std::string display_name = path.filename().string();
  if (!Folder::IsInside(display_name)) {
    return absl::InvalidArgumentError("no file is named; give a file or a folder");
  }
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    return absl::NotFoundError(fmt::format("{}: no such file or folder", path.string()));
  }
  const absl::StatusOr<Folder> folder =
      Folder::Open(path.has_parent_path() ? path.parent_path() : ".");
  if (!folder.ok()) return folder.status();
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = folder->OpenFile(display_name);
  if (!source.ok()) return source.status();
  BufferedReader in(**source);

  Inspection inspection;
  AddCount(inspection, "file_bytes", in.size());
  const absl::Status read = InspectKind(*folder, in, limits, options.quick, inspection);
  if (inspection.kind.empty()) return read;
  if (!read.ok()) inspection.status = LoadError(read);
  return inspection;
}

}  // namespace simile::data
