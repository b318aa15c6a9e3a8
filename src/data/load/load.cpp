#include "data/load/load.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/memory_pages.h"
#include "base/message_text.h"
#include "base/nearest_name.h"
#include "data/faults.h"
#include "data/formats/buffered_reader.h"
#include "data/formats/vector_format.h"
#include "data/formats/vector_reader.h"
#include "data/load/collection_files.h"
#include "data/load/fingerprint.h"
#include "data/load/folder.h"
#include "data/load/id_list_reader.h"
#include "data/load/interactions_reader.h"
#include "data/payload/payload_reader.h"

namespace simile::data {
namespace {

// Reports the bytes read, of all bytes to read.
class ProgressMeter {
 public:
  explicit ProgressMeter(const ProgressFn& progress) : progress_(progress) {}

  void Expect(std::uint64_t bytes) { expected_ += bytes; }
  void Advance(std::string_view file, std::uint64_t bytes) {
    done_ += bytes;
    if (progress_) progress_({file, std::min(done_, expected_), expected_});
  }
  void ReportAllRead() const {
    if (progress_) progress_({"", expected_, expected_});
  }

 private:
  const ProgressFn& progress_;
  std::uint64_t expected_ = 0;
  std::uint64_t done_ = 0;
};

// A file of the collection whose reads are reported to a meter and hashed, so that the content id
// is that of the bytes which were loaded.
class HashedSource final : public ByteSource {
 public:
  HashedSource(std::unique_ptr<FileSource> source, FileRole role, ProgressMeter& meter,
               ContentIdBuilder& content)
      : ByteSource(source->display_name(), source->size()),
        source_(std::move(source)),
        role_(role),
        meter_(meter),
        content_(content) {
    meter_.Expect(size());
    content_.AddFile(role_);
  }
  absl::StatusOr<std::size_t> Read(std::span<char> into) override {
    absl::StatusOr<std::size_t> count = source_->Read(into);
    if (!count.ok()) return count;
    content_.AddBytes(role_, {into.data(), *count});
    meter_.Advance(display_name(), *count);
    read_ += *count;
    return count;
  }
  // Reads the bytes that are skipped, since they belong to the content.
  absl::Status Skip(std::uint64_t count) override {
    constexpr std::uint64_t kStepBytes = std::uint64_t{64} << 10;
    std::vector<char> skipped(std::min(count, kStepBytes));
    while (count > 0) {
      const absl::StatusOr<std::size_t> step =
          Read(std::span(skipped).first(std::min<std::uint64_t>(count, skipped.size())));
      if (!step.ok()) return step.status();
      count -= *step;
    }
    return absl::OkStatus();
  }
  // Hashes nothing: the same bytes are also read in their order.
  absl::Status ReadAt(std::uint64_t offset, std::span<char> into) override {
    return source_->ReadAt(offset, into);
  }
  // Reads the bytes that no reader needed.
  absl::Status ReadRest() { return Skip(size() - read_); }

 private:
  const std::unique_ptr<FileSource> source_;
  const FileRole role_;
  ProgressMeter& meter_;
  ContentIdBuilder& content_;
  std::uint64_t read_ = 0;
};

// An open file of the collection; nothing when it is absent.
struct OpenFile {
  std::unique_ptr<HashedSource> source;
  std::unique_ptr<BufferedReader> reader;
};

// Refuses files that are not those of the plan, naming the first that differs.
absl::Status CheckUnchanged(const FolderFingerprint& planned, const FolderFingerprint& now) {
  const auto [before, after] = std::ranges::mismatch(planned.files, now.files, HaveSameBytes);
  if (before == planned.files.end()) return absl::OkStatus();
  const bool is_gone = after->display_name.empty();
  return base::Error(base::ErrorReason::kFilesChanged,
                     fmt::format("{}: {} since the load was planned; load again",
                                 is_gone ? before->display_name : after->display_name,
                                 is_gone ? "has gone" : "has changed"));
}

// One load, from opening the files to a checked dataset, or the same checks alone. All files are
// opened first, so that progress has a total. Steps that need temporary memory (sorting
// interactions) come before the vectors, the largest part, so that the peak is the finished
// dataset.
class Loader {
 public:
  //   keep  kNothing: Load makes every check, and its dataset has no vectors, payload rows or
  //         seen items
  Loader(const DatasetPlan& plan, Keep keep, const Limits& limits, const ProgressFn& progress)
      : plan_(plan), files_(plan.files), keep_(keep), limits_(limits), meter_(progress) {}

  absl::StatusOr<Dataset> Load() {
    dataset_.metric = files_.metric;
    dataset_.files = plan_.listing.files;
    dataset_.unread_files = plan_.listing.unread_files;
    dataset_.notes = plan_.listing.notes;
    for (absl::Status (Loader::*const step)() :
         {&Loader::CheckSettings, &Loader::OpenAll, &Loader::ReadLayouts, &Loader::LoadPayload,
          &Loader::ChooseLookupFields, &Loader::CheckTypedFields, &Loader::LoadUserIds,
          &Loader::LoadInteractions, &Loader::LoadVectors, &Loader::LoadUserVectors,
          &Loader::ReadRest}) {
      const absl::Status status = (this->*step)();
      if (status.ok()) continue;
      // A file that was being written looks invalid; the caller should know why.
      absl::Status changed = CheckFiles();
      return changed.ok() ? status : changed;
    }
    if (absl::Status status = CheckFiles(); !status.ok()) return status;
    dataset_.fingerprint = plan_.fingerprint;
    for (const FieldInfo& field : dataset_.payload.fields()) {
      if (field.is_kept_otherwise)
        content_.AddKept(field.name, NameOf(field.type), field.separator);
    }
    dataset_.content_id = content_.Id();
    meter_.ReportAllRead();
    return std::move(dataset_);
  }

  // Facts about a load that has succeeded.
  const VectorFacts& vector_facts() const { return vector_facts_; }
  const VectorFacts& user_vector_facts() const { return user_vector_facts_; }
  const std::string& id_field() const { return id_field_; }
  bool interactions_all_unknown() const { return interactions_all_unknown_; }

 private:
  // The plan's settings were read before its fingerprint was taken.
  absl::Status CheckSettings() {
    const absl::StatusOr<Folder> folder = Folder::Open(files_.folder, files_.links_within);
    if (!folder.ok()) return folder.status();
    absl::StatusOr<CollectionFiles> files = DiscoverFiles(*folder, files_.folder, limits_);
    if (!files.ok()) return files.status();
    files->links_within = files_.links_within;
    if (*files == files_) return absl::OkStatus();
    return base::Error(base::ErrorReason::kFilesChanged,
                       "collection.json: has changed since the load was planned; load again");
  }

  absl::Status OpenAll() {
    const absl::StatusOr<Folder> folder = Folder::Open(files_.folder, files_.links_within);
    if (!folder.ok()) return folder.status();
    FolderFingerprint opened;
    for (std::size_t i = 0; i < kFileRoleCount; ++i) {
      const auto role = static_cast<FileRole>(i);
      const std::string& display_name = FileOf(files_, role);
      if (display_name.empty()) continue;
      absl::StatusOr<std::unique_ptr<FileSource>> source = folder->OpenFile(display_name);
      if (!source.ok()) return source.status();
      absl::StatusOr<FileFingerprint> fingerprint = (*source)->TakeFingerprint();
      if (!fingerprint.ok()) return fingerprint.status();
      opened.files[i] = *std::move(fingerprint);
      open_[i].source = std::make_unique<HashedSource>(*std::move(source), role, meter_, content_);
      open_[i].reader = std::make_unique<BufferedReader>(*open_[i].source);
    }
    return CheckUnchanged(plan_.fingerprint, opened);
  }

  absl::Status ReadLayouts() {
    absl::Status status = ReadLayout(vectors_, files_.tensor, plan_.row_count, layout_);
    if (!status.ok() || user_vectors_.reader == nullptr) return status;
    return ReadLayout(user_vectors_, "", plan_.user_count, user_layout_);
  }

  // Memory was reserved for the plan, so a file of another shape is not loaded.
  absl::Status ReadLayout(OpenFile& file, std::string_view tensor, std::uint64_t planned_rows,
                          VectorLayout& layout) const {
    const absl::StatusOr<VectorLayout> read = ReadVectorLayout(*file.reader, tensor, limits_);
    if (!read.ok()) return read.status();
    if (read->row_count != planned_rows || read->dim != plan_.dim) {
      return base::Error(
          base::ErrorReason::kFilesChanged,
          fmt::format("{}: has changed since the load was planned: {} of {} dimensions now, {} of "
                      "{} then; load again",
                      file.reader->display_name(), base::Counted(read->row_count, "row"), read->dim,
                      base::Grouped(planned_rows), plan_.dim));
    }
    layout = *read;
    return absl::OkStatus();
  }

  absl::Status LoadPayload() {
    if (payload_.reader == nullptr) {
      dataset_.ids = IdIndex::OfRowNumbers(layout_.row_count);
      return absl::OkStatus();
    }
    absl::StatusOr<PayloadFile> payload =
        ReadPayload(*payload_.reader,
                    {.id_field = files_.id_field,
                     .expected = ExpectedRows{.count = layout_.row_count,
                                              .said_by = files_.vectors,
                                              .dim = layout_.dim},
                     .fields = plan_.field_rules(),
                     .keep = keep_},
                    limits_);
    if (!payload.ok()) return payload.status();
    // The notes of the payload come first, since they say what the ids are.
    std::ranges::move(dataset_.notes, std::back_inserter(payload->notes));
    dataset_.notes = std::move(payload->notes);
    dataset_.payload = std::move(payload->table);
    dataset_.ids = std::move(payload->ids);
    id_field_ = std::move(payload->id_field);
    return absl::OkStatus();
  }

  absl::Status ChooseLookupFields() {
    for (const std::string& field : files_.lookup_fields) {
      if (absl::Status status = CheckField("lookup_fields", field); !status.ok()) return status;
      if (absl::Status status = CheckHasTexts(field); !status.ok()) return status;
    }
    dataset_.lookup_fields = FindLookupFields(files_, dataset_.payload);
    return absl::OkStatus();
  }

  absl::Status CheckTypedFields() {
    for (const NamedFieldType& named : files_.field_types) {
      if (absl::Status status = CheckField("field_types", named.field); !status.ok()) return status;
    }
    for (const NamedSeparator& named : files_.separators) {
      if (absl::Status status = CheckField("separators", named.field); !status.ok()) return status;
    }
    for (const KeptType& kept : plan_.kept_types.types) {
      if (kept.type == FieldType::kOther || dataset_.payload.FieldNumber(kept.field)) continue;
      if (dataset_.absent_types.size() == limits_.payload_fields_per_collection_max) break;
      dataset_.absent_types.push_back(kept);
    }
    return absl::OkStatus();
  }

  // Refuses a field of collection.json that no row has.
  absl::Status CheckField(std::string_view key, const std::string& field) const {
    if (dataset_.payload.FieldNumber(field)) return absl::OkStatus();
    std::vector<std::string> known;
    for (const FieldInfo& each : dataset_.payload.fields()) known.push_back(each.name);
    const std::string nearest = base::NearestName(field, known);
    return absl::InvalidArgumentError(fmt::format(
        "collection.json: {} names {}, which no row has{}", base::Quoted(key), base::Quoted(field),
        nearest.empty() ? std::string()
                        : fmt::format("; did you mean {}?", base::Quoted(nearest))));
  }

  // Refuses a look-up field in which no text can be found.
  absl::Status CheckHasTexts(const std::string& name) const {
    const FieldInfo& field = dataset_.payload.fields()[*dataset_.payload.FieldNumber(name)];
    if (field.values.texts() + field.values.Of(ValueKind::kTexts).count > 0) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        fmt::format("collection.json: \"lookup_fields\" names {}, which is of type {} and holds no "
                    "text to look "
                    "up; name fields of texts, or of lists of texts",
                    base::Quoted(name), NameOf(field.type)));
  }

  absl::Status LoadUserIds() {
    if (user_ids_.reader == nullptr) return absl::OkStatus();
    absl::StatusOr<IdIndex> ids = ReadIdList(*user_ids_.reader,
                                             ExpectedRows{.count = user_layout_.row_count,
                                                          .said_by = files_.user_vectors,
                                                          .dim = user_layout_.dim},
                                             limits_);
    if (!ids.ok()) return ids.status();
    dataset_.profiles.ids = *std::move(ids);
    return absl::OkStatus();
  }

  absl::Status LoadInteractions() {
    if (interactions_.reader == nullptr) return absl::OkStatus();
    absl::StatusOr<Interactions> interactions = ReadInteractions(
        *interactions_.reader, dataset_.profiles.ids, dataset_.ids, id_field_, keep_, limits_);
    if (!interactions.ok()) return interactions.status();
    dataset_.profiles.seen = std::move(interactions->seen);
    dataset_.profiles.visitor_ids = std::move(interactions->visitor_ids);
    dataset_.profiles.visitor_seen = std::move(interactions->visitor_seen);
    dataset_.profiles.most_seen = std::move(interactions->most_seen);
    interactions_all_unknown_ = interactions->all_unknown;
    AddNotes(std::move(interactions->notes));
    return absl::OkStatus();
  }

  absl::Status LoadVectors() {
    // Frees the memory that reading the other files took, before the largest part needs it.
    base::ReturnFreedMemory();
    const VectorRules rules{.metric = files_.metric, .on_zero_row = files_.on_zero_row};
    absl::Status status = LoadMatrix(vectors_, layout_, rules, dataset_.vectors, vector_facts_);
    if (payload_.reader == nullptr && user_vectors_.reader == nullptr) {
      NoteTransposed(files_.vectors, layout_, dataset_.notes);
    }
    // Lengths are measured in double; normalizing rounds every number to fp32.
    constexpr double kRounding = 1.0 + 0x1p-20;
    const double longest = files_.metric == Metric::kCosine ? 1.0 : vector_facts_.longest;
    dataset_.longest_row = longest * kRounding;
    dataset_.skipped_rows = vector_facts_.skipped_rows;
    if (const std::vector<Row>& skipped = dataset_.skipped_rows; status.ok() && !skipped.empty()) {
      const bool is_one = skipped.size() == 1;
      dataset_.notes.push_back(fmt::format(
          "{}: {} of {} {} all zeros and {} skipped, the first is row {}", files_.vectors,
          base::Grouped(skipped.size()), base::Counted(layout_.row_count, "row"),
          is_one ? "is" : "are", is_one ? "is" : "are", base::Grouped(skipped.front())));
    }
    return status;
  }

  // For cosine a user without a direction is refused, also where rows are skipped: nothing would
  // answer for that user.
  absl::Status LoadUserVectors() {
    if (user_vectors_.reader == nullptr) return absl::OkStatus();
    const VectorRules rules{.metric = files_.metric, .zero_row_advice = kZeroUserAdvice};
    return LoadMatrix(user_vectors_, user_layout_, rules, dataset_.profiles.vectors,
                      user_vector_facts_);
  }

  absl::Status LoadMatrix(OpenFile& file, const VectorLayout& layout, const VectorRules& rules,
                          Matrix& kept, VectorFacts& facts) {
    if (keep_ == Keep::kNothing) {
      const absl::Status status = CheckRows(*file.reader, layout, rules, facts);
      if (!status.ok()) return status;
    } else {
      absl::StatusOr<Matrix> matrix = ReadMatrix(*file.reader, layout, rules, facts);
      if (!matrix.ok()) return matrix.status();
      kept = *std::move(matrix);
    }
    if (const std::string equal = EqualRowsText(facts.equal, layout.row_count); !equal.empty()) {
      dataset_.notes.push_back(fmt::format("{}: {}", file.reader->display_name(), equal));
    }
    // Differences from unit length below the precision of fp32 are not reported.
    constexpr double kUnitTolerance = 1e-6;
    if (files_.metric == Metric::kCosine &&
        (facts.shortest < 1 - kUnitTolerance || facts.longest > 1 + kUnitTolerance)) {
      dataset_.notes.push_back(fmt::format(
          "{}: {} normalized; their lengths were {:.6g} to {:.6g}", file.reader->display_name(),
          base::Counted(layout.row_count - facts.skipped_rows.size(), "row"), facts.shortest,
          facts.longest));
    }
    return absl::OkStatus();
  }

  // Reads the bytes that no reader needed, for the content id.
  absl::Status ReadRest() {
    for (OpenFile& file : open_) {
      if (file.source == nullptr) continue;
      if (absl::Status status = file.source->ReadRest(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Whether the folder still has the files of the plan.
  absl::Status CheckFiles() const {
    const absl::StatusOr<FolderFingerprint> now =
        TakeFingerprint(files_.folder, limits_, files_.links_within);
    if (absl::IsResourceExhausted(now.status())) return now.status();  // it says nothing of them
    if (!now.ok()) {
      return base::Error(
          base::ErrorReason::kFilesChanged,
          fmt::format("the folder has changed since the load was planned: {}; load again",
                      std::string(now.status().message())));
    }
    return CheckUnchanged(plan_.fingerprint, *now);
  }

  void AddNotes(std::vector<std::string> notes) {
    std::ranges::move(notes, std::back_inserter(dataset_.notes));
  }

  OpenFile& Of(FileRole role) { return open_[static_cast<std::size_t>(role)]; }

  const DatasetPlan& plan_;
  const CollectionFiles& files_;
  const Keep keep_;
  const Limits& limits_;
  ProgressMeter meter_;
  ContentIdBuilder content_;
  std::array<OpenFile, kFileRoleCount> open_;  // by FileRole
  OpenFile& vectors_ = Of(FileRole::kVectors);
  OpenFile& payload_ = Of(FileRole::kPayload);
  OpenFile& user_ids_ = Of(FileRole::kUserIds);
  OpenFile& user_vectors_ = Of(FileRole::kUserVectors);
  OpenFile& interactions_ = Of(FileRole::kInteractions);
  VectorLayout layout_;
  VectorLayout user_layout_;
  VectorFacts vector_facts_;
  VectorFacts user_vector_facts_;
  std::string id_field_;
  bool interactions_all_unknown_ = false;
  Dataset dataset_;
};

}  // namespace

std::vector<std::string> FindLookupFields(const CollectionFiles& files,
                                          const PayloadTable& payload) {
  if (!files.lookup_fields.empty()) return files.lookup_fields;
  for (const char* const field : {"title", "name"}) {
    if (payload.FieldNumber(field)) return {field};
  }
  return {};
}

std::vector<KeptType> ListKeptTypes(const Dataset& dataset) {
  std::vector<KeptType> types = dataset.absent_types;
  for (const FieldInfo& field : dataset.payload.fields()) {
    types.push_back({field.name, field.type, field.separator, field.has_lasting_meaning});
  }
  return types;
}

std::string UnfitText(const PayloadTable& payload) {
  constexpr std::size_t kFieldsMax = 16;
  std::string text;
  std::size_t listed = 0;
  for (const FieldInfo& field : payload.fields()) {
    const ValueSample unfit = field.values.UnfitFor(field.type);
    if (unfit.count == 0) continue;
    if (listed++ == kFieldsMax) return text + "; ...";
    fmt::format_to(std::back_inserter(text), "{}{} ({}): {}, the first in row {}",
                   text.empty() ? "" : "; ", field.name, NameOf(field.type),
                   base::Counted(unfit.count, "value"), base::Grouped(unfit.first_row));
  }
  return text;
}

absl::StatusOr<Dataset> LoadDataset(const DatasetPlan& plan, const Limits& limits,
                                    const ProgressFn& progress) {
  absl::StatusOr<Dataset> dataset = Loader(plan, Keep::kRows, limits, progress).Load();
  if (!dataset.ok()) return LoadError(dataset.status());
  return dataset;
}

absl::StatusOr<DatasetSummary> CheckDataset(const DatasetPlan& plan, const Limits& limits,
                                            const ProgressFn& progress) {
  Loader loader(plan, Keep::kNothing, limits, progress);
  absl::StatusOr<Dataset> dataset = loader.Load();
  if (!dataset.ok()) return LoadError(dataset.status());
  const std::span<const FieldInfo> fields = dataset->payload.fields();
  return DatasetSummary{.content_id = std::move(dataset->content_id),
                        .vectors = loader.vector_facts(),
                        .user_vectors = loader.user_vector_facts(),
                        .id_field = loader.id_field(),
                        .first_id = dataset->ids.Id(0),
                        .last_id = dataset->ids.Id(static_cast<Row>(dataset->ids.size() - 1)),
                        .fields = {fields.begin(), fields.end()},
                        .lookup_fields = std::move(dataset->lookup_fields),
                        .notes = std::move(dataset->notes),
                        .interactions_all_unknown = loader.interactions_all_unknown()};
}

}  // namespace simile::data
