#include "data/load.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/nearest_name.h"
#include "data/buffered_reader.h"
#include "data/folder.h"
#include "data/id_list_reader.h"
#include "data/interactions_reader.h"
#include "data/payload_reader.h"
#include "data/vector_format.h"
#include "data/vector_reader.h"

namespace simile::data {
namespace {

// Reports the bytes read as a fraction of all bytes to read.
class ProgressMeter {
 public:
  explicit ProgressMeter(const ProgressFn& progress) : progress_(progress) {}

  void Expect(std::uint64_t bytes) { expected_ += bytes; }
  void Advance(std::uint64_t bytes) {
    done_ += bytes;
    if (progress_) {
      progress_(std::min(1.0, static_cast<double>(done_) / static_cast<double>(expected_)));
    }
  }

 private:
  const ProgressFn& progress_;
  std::uint64_t expected_ = 0;
  std::uint64_t done_ = 0;
};

// A source that reports its reads to a meter.
class MeteredSource final : public ByteSource {
 public:
  MeteredSource(std::unique_ptr<ByteSource> source, ProgressMeter& meter)
      : ByteSource(source->display_name(), source->size()),
        source_(std::move(source)),
        meter_(meter) {
    meter_.Expect(size());
  }
  absl::StatusOr<std::size_t> Read(std::span<char> into) override {
    absl::StatusOr<std::size_t> count = source_->Read(into);
    if (count.ok()) meter_.Advance(*count);
    return count;
  }
  void Skip(std::uint64_t count) override {
    source_->Skip(count);
    meter_.Advance(count);
  }

 private:
  const std::unique_ptr<ByteSource> source_;
  ProgressMeter& meter_;
};

// An open file of the collection.
struct OpenFile {
  std::unique_ptr<ByteSource> source;
  std::unique_ptr<BufferedReader> reader;
};

// One load, from opening the files to a checked dataset. All files are opened first, so that
// progress has a total. Steps that need temporary memory (sorting interactions) come before the
// vectors, the largest part, so that the peak is the finished dataset.
class Loader {
 public:
  Loader(const DatasetPlan& plan, const Limits& limits, const ProgressFn& progress)
      : plan_(plan), files_(plan.files), limits_(limits), meter_(progress) {}

  absl::StatusOr<Dataset> Load() {
    dataset_.metric = files_.metric;
    for (absl::Status (Loader::*const step)() :
         {&Loader::OpenAll, &Loader::LoadPayload, &Loader::ChooseLookupFields,
          &Loader::ChooseFieldTypes, &Loader::LoadUserIds, &Loader::LoadInteractions,
          &Loader::LoadVectors, &Loader::LoadUserVectors}) {
      if (absl::Status status = (this->*step)(); !status.ok()) return status;
    }
    return std::move(dataset_);
  }

 private:
  absl::Status OpenAll() {
    const absl::StatusOr<Folder> folder = Folder::Open(files_.folder);
    if (!folder.ok()) return folder.status();
    const auto open = [&](const std::string& display_name, OpenFile& file) -> absl::Status {
      if (display_name.empty()) return absl::OkStatus();
      absl::StatusOr<std::unique_ptr<ByteSource>> source = folder->OpenFile(display_name);
      if (!source.ok()) return source.status();
      file.source = std::make_unique<MeteredSource>(*std::move(source), meter_);
      file.reader = std::make_unique<BufferedReader>(*file.source);
      return absl::OkStatus();
    };
    for (const auto& [display_name, file] :
         {std::pair<const std::string&, OpenFile&>{files_.vectors, vectors_},
          {files_.payload, payload_},
          {files_.user_ids, user_ids_},
          {files_.user_vectors, user_vectors_},
          {files_.interactions, interactions_}}) {
      if (absl::Status status = open(display_name, file); !status.ok()) return status;
    }
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
      return absl::AbortedError(
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
        ReadPayload(*payload_.reader, files_.id_field,
                    ExpectedRows{.count = layout_.row_count, .said_by = files_.vectors}, limits_);
    if (!payload.ok()) return payload.status();
    dataset_.payload = std::move(payload->table);
    dataset_.ids = std::move(payload->ids);
    id_field_ = std::move(payload->id_field);
    return absl::OkStatus();
  }

  absl::Status ChooseLookupFields() {
    const PayloadTable& payload = dataset_.payload;
    if (files_.lookup_fields.empty()) {
      for (const char* const field : {"title", "name"}) {
        if (!payload.FieldNumber(field)) continue;
        dataset_.lookup_fields = {field};
        break;
      }
      return absl::OkStatus();
    }
    for (const std::string& field : files_.lookup_fields) {
      if (absl::Status status = CheckField("lookup_fields", field); !status.ok()) return status;
    }
    dataset_.lookup_fields = files_.lookup_fields;
    return absl::OkStatus();
  }

  absl::Status ChooseFieldTypes() {
    for (const NamedFieldType& named : files_.field_types) {
      if (absl::Status status = CheckField("field_types", named.field); !status.ok()) return status;
    }
    dataset_.field_types = files_.field_types;
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

  absl::Status LoadUserIds() {
    if (user_ids_.reader == nullptr) return absl::OkStatus();
    absl::StatusOr<IdIndex> ids = ReadIdList(
        *user_ids_.reader,
        ExpectedRows{.count = user_layout_.row_count, .said_by = files_.user_vectors}, limits_);
    if (!ids.ok()) return ids.status();
    dataset_.profiles.ids = *std::move(ids);
    return absl::OkStatus();
  }

  absl::Status LoadInteractions() {
    if (interactions_.reader == nullptr) return absl::OkStatus();
    if (user_ids_.reader == nullptr) {
      dataset_.notes.push_back(fmt::format(
          "{}: not used, since the collection has no users (user_ids.json)", files_.interactions));
      return absl::OkStatus();
    }
    absl::StatusOr<Interactions> interactions = ReadInteractions(
        *interactions_.reader, dataset_.profiles.ids, dataset_.ids, id_field_, limits_);
    if (!interactions.ok()) return interactions.status();
    dataset_.profiles.seen = std::move(interactions->seen);
    dataset_.profiles.most_seen = dataset_.profiles.seen.MostSeen(layout_.row_count);
    std::move(interactions->notes.begin(), interactions->notes.end(),
              std::back_inserter(dataset_.notes));
    return absl::OkStatus();
  }

  absl::Status LoadVectors() {
    LengthRange lengths;
    absl::Status status = LoadMatrix(vectors_, layout_, dataset_.vectors, lengths);
    // Lengths are measured in double; normalizing rounds every number to fp32.
    constexpr double kRounding = 1.0 + 0x1p-20;
    const double longest = files_.metric == Metric::kCosine ? 1.0 : lengths.longest;
    dataset_.longest_row = longest * kRounding;
    return status;
  }
  absl::Status LoadUserVectors() {
    if (user_vectors_.reader == nullptr) return absl::OkStatus();
    LengthRange lengths;
    return LoadMatrix(user_vectors_, user_layout_, dataset_.profiles.vectors, lengths);
  }

  absl::Status LoadMatrix(OpenFile& file, const VectorLayout& layout, Matrix& kept,
                          LengthRange& lengths) {
    absl::StatusOr<Matrix> matrix = ReadMatrix(*file.reader, layout, files_.metric, lengths);
    if (!matrix.ok()) return matrix.status();
    kept = *std::move(matrix);
    // Differences from unit length below the precision of fp32 are not reported.
    constexpr double kUnitTolerance = 1e-6;
    if (files_.metric == Metric::kCosine &&
        (lengths.shortest < 1 - kUnitTolerance || lengths.longest > 1 + kUnitTolerance)) {
      dataset_.notes.push_back(fmt::format(
          "{}: {} normalized; their lengths were {:.6g} to {:.6g}", file.reader->display_name(),
          base::Counted(layout.row_count, "row"), lengths.shortest, lengths.longest));
    }
    return absl::OkStatus();
  }

  const DatasetPlan& plan_;
  const CollectionFiles& files_;
  const Limits& limits_;
  ProgressMeter meter_;
  OpenFile vectors_;
  OpenFile payload_;
  OpenFile user_ids_;
  OpenFile user_vectors_;
  OpenFile interactions_;
  VectorLayout layout_;
  VectorLayout user_layout_;
  std::string id_field_;
  Dataset dataset_;
};

}  // namespace

absl::StatusOr<Dataset> LoadDataset(const DatasetPlan& plan, const Limits& limits,
                                    const ProgressFn& progress) {
  absl::StatusOr<Dataset> dataset = Loader(plan, limits, progress).Load();
  // A file may contain more bytes than the load reads.
  if (dataset.ok() && progress) progress(1.0);
  return dataset;
}

}  // namespace simile::data
