#include "service/collection_message.h"

#include <chrono>

#include "simile/v1/collections.pb.h"

namespace simile::service {
namespace {

v1::Collection::State StateOf(engine::CollectionState state) {
  switch (state) {
    case engine::CollectionState::kLoading:
      return v1::Collection::LOADING;
    case engine::CollectionState::kServing:
      return v1::Collection::SERVING;
    case engine::CollectionState::kReloading:
      return v1::Collection::RELOADING;
  }
  return v1::Collection::STATE_UNSPECIFIED;
}

void FillTime(std::chrono::system_clock::time_point time, google::protobuf::Timestamp& message) {
  const auto since_epoch = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
  message.set_seconds(seconds.count());
  message.set_nanos(static_cast<std::int32_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch - seconds).count()));
}

void FillBytes(const engine::ResidentBytes& bytes, v1::Bytes& message) {
  message.set_vectors(bytes.vectors);
  message.set_payload(bytes.payload);
  message.set_users(bytes.users);
  message.set_index(bytes.index);
  message.set_device(bytes.device);
}

void FillServedBy(const ServedBy& served_by, v1::Backend& message) {
  message.set_name(served_by.info.name);
  message.set_device(served_by.info.device);
  message.set_engine(served_by.info.engine);
  message.set_reason(served_by.reason);
}

void FillSnapshot(const engine::Snapshot& snapshot, v1::Collection& message) {
  const data::Dataset& dataset = *snapshot.dataset;
  message.set_snapshot_version(snapshot.version);
  FillTime(snapshot.loaded_at, *message.mutable_loaded_at());
  message.set_rows(snapshot.row_count());
  message.set_dim(static_cast<std::uint32_t>(snapshot.dim()));
  message.set_metric(dataset.metric == Metric::kCosine ? v1::Collection::COSINE
                                                       : v1::Collection::DOT);
  message.set_users(dataset.profiles.ids.size());
  message.set_interactions(dataset.profiles.seen.pair_count());
  FillBytes(engine::BytesOf(snapshot), *message.mutable_bytes());
  for (const filter::Field& field : snapshot.filters->payload().fields()) {
    FillField(field, *message.add_fields());
  }
  for (const std::string& field : snapshot.text_index.fields()) message.add_lookup_fields(field);
  for (const std::string& note : dataset.notes) message.add_notes(note);
  const engine::IndexState index = engine::IndexStateOf(snapshot);
  message.set_index_built(static_cast<float>(index.built));
  message.set_index_problem(index.problem);
}

}  // namespace

ServedBy ServingBackend::Now() const {
  const FallbackBackend fallback = backend.fallback();
  return fallback != nullptr ? *fallback : ServedBy{backend.info(), reason};
}

void FillBackend(const ServingBackend& backend, v1::Backend& message) {
  FillServedBy(backend.Now(), message);
  for (const DeviceMemory& memory : backend.backend.device_memory()) {
    v1::DeviceMemory& filled = *message.add_device_memory();
    filled.set_kind(memory.kind);
    filled.set_bytes(memory.bytes);
    filled.set_peak_bytes(memory.peak_bytes);
  }
}

void FillField(const filter::Field& field, v1::Field& message) {
  message.set_name(field.name);
  message.set_type(std::string(data::NameOf(field.type)));
  message.set_rows(field.present.size());
}

void FillCollection(const engine::CollectionStatus& status, const ServingBackend& backend,
                    v1::Collection& message) {
  message.set_name(status.name);
  message.set_state(StateOf(status.state));
  message.set_progress(static_cast<float>(status.progress));
  FallbackBackend fallback;
  if (status.snapshot != nullptr) {
    FillSnapshot(*status.snapshot, message);
    fallback = engine::FallbackOf(*status.snapshot);
  }
  FillServedBy(fallback != nullptr ? *fallback : backend.Now(), *message.mutable_backend());
}

}  // namespace simile::service
