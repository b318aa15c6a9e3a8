#include "service/replies/collection_message.h"

#include <chrono>
#include <cmath>
#include <optional>
#include <string_view>
#include <variant>

#include "base/error_detail.h"
#include "data/load/folder_files.h"
#include "filter/field_summary.h"
#include "service/replies/receipt_encoding.h"
#include "simile/v1/collections.pb.h"
#include "simile/v1/types.pb.h"

namespace simile::service {
namespace {

v1::Collection::State ToState(engine::CollectionState state) {
  switch (state) {
    case engine::CollectionState::kLoading:
      return v1::Collection::STATE_LOADING;
    case engine::CollectionState::kServing:
      return v1::Collection::STATE_SERVING;
    case engine::CollectionState::kReloading:
      return v1::Collection::STATE_RELOADING;
    case engine::CollectionState::kFailed:
      return v1::Collection::STATE_FAILED;
  }
  return v1::Collection::STATE_UNSPECIFIED;
}

void FillBytes(const engine::ResidentBytes& bytes, v1::ResidentBytes& message) {
  message.set_vectors(bytes.vectors);
  message.set_payload(bytes.payload);
  message.set_users(bytes.users);
  message.set_index(bytes.index);
  message.set_device(bytes.device);
}

void FillServedBy(const ServedBy& served_by, v1::BackendStatus& message) {
  message.set_kind(ToBackendKind(served_by.info));
  message.set_device(served_by.info.device);
  message.set_engine(served_by.info.engine);
  message.set_reason(served_by.reason);
}

v1::FieldType ToFieldType(filter::FieldType type) {
  switch (type) {
    case filter::FieldType::kKeyword:
      return v1::FIELD_TYPE_KEYWORD;
    case filter::FieldType::kKeywords:
      return v1::FIELD_TYPE_KEYWORD_LIST;
    case filter::FieldType::kInteger:
      return v1::FIELD_TYPE_INTEGER;
    case filter::FieldType::kIntegers:
      return v1::FIELD_TYPE_INTEGER_LIST;
    case filter::FieldType::kNumber:
      return v1::FIELD_TYPE_NUMBER;
    case filter::FieldType::kNumbers:
      return v1::FIELD_TYPE_NUMBER_LIST;
    case filter::FieldType::kBoolean:
      return v1::FIELD_TYPE_BOOLEAN;
    case filter::FieldType::kBooleans:
      return v1::FIELD_TYPE_BOOLEAN_LIST;
    case filter::FieldType::kTime:
      return v1::FIELD_TYPE_TIME;
    case filter::FieldType::kOther:
      return v1::FIELD_TYPE_OTHER;
  }
  return v1::FIELD_TYPE_UNSPECIFIED;
}

v1::CollectionFile::Role ToRole(const std::optional<data::FileRole>& role) {
  if (!role) return v1::CollectionFile::ROLE_UNSPECIFIED;
  switch (*role) {
    case data::FileRole::kSettings:
      return v1::CollectionFile::ROLE_SETTINGS;
    case data::FileRole::kVectors:
      return v1::CollectionFile::ROLE_VECTORS;
    case data::FileRole::kPayload:
      return v1::CollectionFile::ROLE_PAYLOAD;
    case data::FileRole::kUserIds:
      return v1::CollectionFile::ROLE_USER_IDS;
    case data::FileRole::kUserVectors:
      return v1::CollectionFile::ROLE_USER_VECTORS;
    case data::FileRole::kInteractions:
      return v1::CollectionFile::ROLE_INTERACTIONS;
  }
  return v1::CollectionFile::ROLE_UNSPECIFIED;
}

void FillFile(const data::FolderFile& file, v1::CollectionFile& message) {
  message.set_name(file.display_name);
  message.set_role(ToRole(file.role));
  message.set_bytes(file.bytes);
  message.set_unread_reason(file.unread_reason);
}

v1::ChangeProgress::Stage ToStage(engine::ChangeStage stage) {
  switch (stage) {
    case engine::ChangeStage::kWaiting:
      return v1::ChangeProgress::STAGE_WAITING;
    case engine::ChangeStage::kReading:
      return v1::ChangeProgress::STAGE_READING;
    case engine::ChangeStage::kIndexing:
      return v1::ChangeProgress::STAGE_INDEXING;
    case engine::ChangeStage::kVerifying:
      return v1::ChangeProgress::STAGE_VERIFYING;
  }
  return v1::ChangeProgress::STAGE_UNSPECIFIED;
}

// Sets a payload value from a summary's.
struct SetValue {
  v1::PayloadValue& message;

  void operator()(const std::string& text) const { message.set_string_value(text); }
  void operator()(std::int64_t number) const { message.set_int_value(number); }
  void operator()(double number) const { message.set_double_value(number); }
  void operator()(bool flag) const { message.set_bool_value(flag); }
};

void FillSummaryValue(const filter::SummaryValue& value, v1::PayloadValue& message) {
  std::visit(SetValue{message}, value);
}

// What every caller sees of a snapshot.
void FillIdentity(const PermittedSnapshot& snapshot, v1::Collection& message) {
  message.set_snapshot_id(snapshot.id());
  message.set_snapshot_version(snapshot.version());
  FillTime(snapshot.loaded_at(), *message.mutable_loaded_at());
  message.set_dim(static_cast<std::uint32_t>(snapshot.dim()));
  message.set_metric(snapshot.metric() == Metric::kCosine ? v1::Collection::METRIC_COSINE
                                                          : v1::Collection::METRIC_DOT);
}

// Sets a field with its type, and how many of the caller's rows have it.
void FillField(const filter::Field& field, const engine::ExistingItems& rows,
               v1::PayloadField& message) {
  const auto count = [&](const filter::RowSet& set) {
    return rows.mask() == nullptr ? set.size() : set.CountAllowed(*rows.mask());
  };
  message.set_name(field.name);
  message.set_type(ToFieldType(field.type));
  message.set_rows(count(field.present));
  message.set_unfit_rows(count(field.unfit));
  if (rows.mask() == nullptr) message.set_first_unfit_row(field.first_unfit_row);
}

// Sets how many users exist for the caller. Interactions are set only when all rows exist for the
// caller: the users may have seen rows that do not.
// Errors: those of `work`.
absl::Status FillUsers(const PermittedSnapshot::OwnRows& own, base::LongWork& work,
                       v1::Collection& message) {
  const engine::Snapshot& snapshot = own.snapshot;
  const auto users = snapshot.user_subsets->Of(own.rows.users(), snapshot.dataset, work);
  if (!users.ok()) return users.status();
  message.set_users(users->user_count);
  if (own.rows.mask() == nullptr) message.set_interactions(users->pair_count);
  return absl::OkStatus();
}

// Sets what only a caller sees for whom all rows and users exist.
void FillContent(const engine::Snapshot& snapshot, v1::Collection& message) {
  const data::Dataset& dataset = *snapshot.dataset;
  FillBytes(engine::SumBytes(snapshot), *message.mutable_bytes());
  for (const std::string& note : dataset.notes) message.add_notes(note);
  for (const data::FolderFile& file : dataset.files) FillFile(file, *message.add_files());
  message.set_unread_files(dataset.unread_files);
  message.set_skipped_rows(dataset.skipped_rows.size());
  if (snapshot.overlap) message.set_overlap(*snapshot.overlap);
  message.set_index_problem(engine::FindIndexState(snapshot).problem);
}

// The same for a caller for whom only some rows or users exist: only what concerns these.
//   rows  null for all
void FillOwnContent(const engine::Snapshot& snapshot, const RowMask* rows,
                    v1::Collection& message) {
  const data::Dataset& dataset = *snapshot.dataset;
  message.set_skipped_rows(rows == nullptr ? dataset.skipped_rows.size()
                                           : rows->AllowedCount(dataset.skipped_rows));
  if (!dataset.notes.empty()) {
    message.add_notes(
        "notes of the load are left out: they may name rows or users that do not exist here");
  }
  if (!engine::FindIndexState(snapshot).problem.empty()) {
    message.set_index_problem(
        "the server shows the reason only to callers for whom all rows and users exist");
  }
}

// Sets the fields that exist for the caller.
void FillFields(const PermittedSnapshot::OwnRows& own, v1::Collection& message) {
  for (const filter::Field& field : own.rows.fields().fields()) {
    FillField(field, own.rows, *message.add_fields());
  }
  for (const std::string& field : FindLookupFields(own.snapshot, own.rows.fields())) {
    message.add_lookup_fields(field);
  }
  message.set_index_built(static_cast<float>(engine::FindIndexState(own.snapshot).built));
}

// Sets the backend that answers for the collection.
void FillCollectionBackend(const engine::Snapshot& snapshot, const ServingBackend& backend,
                           v1::BackendStatus& message) {
  const FallbackBackend fallback = engine::FindFallback(snapshot);
  const ServedBy served_by = fallback != nullptr ? *fallback : backend.Now();
  FillServedBy(served_by, message);
  message.set_engine(std::string(engine::FindEngine(snapshot, served_by)));
}

void FillSearchTimes(const engine::Executor& executor, const engine::Snapshot& snapshot,
                     v1::Collection& message) {
  for (const engine::CostEstimator::PassTime& time : executor.ListPassTimes(snapshot)) {
    v1::SearchTime& filled = *message.add_search_times();
    filled.set_queries(time.searches);
    filled.set_search_us(static_cast<std::uint64_t>(std::llround(time.ms * 1'000)));
  }
}

}  // namespace

ServedBy ServingBackend::Now() const {
  const FallbackBackend fallback = backend.fallback();
  return fallback != nullptr ? *fallback : ServedBy{backend.info(), reason};
}

void FillBackend(const ServingBackend& backend, const CallAccess& access,
                 v1::BackendStatus& message) {
  FillServedBy(backend.Now(), message);
  if (!access.sees_all()) return message.clear_reason();
  for (const DeviceMemory& memory : backend.backend.device_memory()) {
    v1::DeviceMemory& filled = *message.add_device_memory();
    filled.set_kind(memory.kind);
    filled.set_bytes(memory.bytes);
    filled.set_peak_bytes(memory.peak_bytes);
  }
  if (const std::optional<CardMemory> card = backend.backend.card_memory()) {
    message.mutable_card_memory()->set_total_bytes(card->total_bytes);
    message.mutable_card_memory()->set_free_bytes(card->free_bytes);
  }
}

std::uint64_t CountRows(const PermittedSnapshot::OwnRows& own) {
  const std::shared_ptr<const RowMask>& mask = own.rows.mask();
  return mask == nullptr ? own.snapshot.row_count() : mask->AllowedCount();
}

std::vector<std::string> FindLookupFields(const engine::Snapshot& snapshot,
                                          const filter::PayloadView& fields) {
  std::vector<std::string> names = snapshot.text_index->fields();
  if (!fields.has_all()) {
    std::erase_if(names, [&](const std::string& name) { return fields.Find(name) == nullptr; });
  }
  return names;
}

void FillTime(std::chrono::system_clock::time_point time, google::protobuf::Timestamp& message) {
  const auto since_epoch = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
  message.set_seconds(seconds.count());
  message.set_nanos(static_cast<std::int32_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch - seconds).count()));
}

absl::Status FillDescription(const PermittedSnapshot::OwnRows& own, const filter::Field& field,
                             std::size_t values_max, base::LongWork& work,
                             v1::FieldDescription& message) {
  FillField(field, own.rows, *message.mutable_field());
  const bool all = own.rows.mask() == nullptr;
  const auto summary =
      all ? filter::Summarize(field, values_max, work)
          : filter::SummarizeRows(*own.snapshot.filters, field, *own.rows.mask(), values_max, work);
  if (!summary.ok()) return summary.status();
  message.set_distinct_values(summary->distinct_values);
  for (const filter::FieldSummary::Value& value : summary->most_common) {
    v1::ValueCount& count = *message.add_values();
    FillSummaryValue(value.value, *count.mutable_value());
    count.set_rows(value.rows);
  }
  if (summary->least) FillSummaryValue(*summary->least, *message.mutable_least());
  if (summary->greatest) FillSummaryValue(*summary->greatest, *message.mutable_greatest());
  if (all) message.set_bytes(field.bytes());
  return absl::OkStatus();
}

void FillProgress(const engine::ChangeProgress& progress, v1::ChangeProgress& message) {
  message.set_stage(ToStage(progress.stage));
  message.set_file(progress.file);
  message.set_share(progress.share);
  message.set_bytes_read(progress.bytes_read);
  message.set_bytes_total(progress.bytes_total);
}

absl::Status FillCollection(const PermittedStatus& status, const ServingBackend& backend,
                            const engine::Executor& executor, base::LongWork& work,
                            v1::Collection& message) {
  message.set_name(status.name);
  message.set_state(ToState(status.state));
  if (status.progress) FillProgress(*status.progress, *message.mutable_progress());
  if (!status.snapshot) {
    message.set_load_error(status.load_error);
    FillServedBy(backend.Now(), *message.mutable_backend());
    message.mutable_backend()->clear_reason();  // the response has the reason, if it may be seen
    return absl::OkStatus();
  }
  FillIdentity(*status.snapshot, message);
  message.set_folder(status.origin.folder);
  message.set_loaded_from(status.origin.loaded_from);
  message.set_rollback_snapshot_id(status.origin.rollback_snapshot_id);
  const auto own = status.snapshot->Own(work);
  if (!own.ok()) {
    if (base::ReasonOf(own.status()) != base::ErrorReason::kPermissionDenied) return own.status();
    message.add_notes(std::string(own.status().message()));
    return absl::OkStatus();
  }
  message.set_rows(CountRows(*own));
  FillFields(*own, message);
  FillCollectionBackend(own->snapshot, backend, *message.mutable_backend());
  if (status.snapshot->collection().sees_all_rows_and_users()) {
    FillContent(own->snapshot, message);
    FillSearchTimes(executor, own->snapshot, message);
  } else {
    FillOwnContent(own->snapshot, own->rows.mask().get(), message);
    message.mutable_backend()->clear_reason();
  }
  return FillUsers(*own, work, message);
}

}  // namespace simile::service
