#include "service/response_builder.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "service/backend_kind.h"
#include "service/reply_size.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

// What a row takes besides its id, payload and vector, at most: the tags, lengths and numbers of a
// Hit or Item and of the messages around it.
constexpr std::uint64_t kRowOverheadMax = 48;
// The least that is around a Hit or Item: a tag and a length.
constexpr std::uint64_t kRowOverheadMin = 2;

// Moves a payload value into a message.
struct ValueFiller {
  v1::PayloadValue& message;

  void operator()(std::monostate) const { message.set_null_value(true); }
  void operator()(bool flag) const { message.set_bool_value(flag); }
  void operator()(std::int64_t number) const { message.set_int_value(number); }
  void operator()(double number) const { message.set_double_value(number); }
  void operator()(std::string&& text) const { message.set_string_value(std::move(text)); }
  void operator()(PayloadList&& list) const {
    v1::PayloadList& values = *message.mutable_list_value();
    for (PayloadValue& value : list) FillValue(std::move(value), *values.add_values());
  }
  void operator()(PayloadObject&& object) const {
    auto& fields = *message.mutable_object_value()->mutable_fields();
    for (auto& [name, value] : object) FillValue(std::move(value), fields[std::move(name)]);
  }
};

// Fills the fields that Hit and Item share.
template <class Message>
void FillRow(const engine::Snapshot& snapshot, const RowShape& shape, Row row, Message& message) {
  const data::Dataset& dataset = *snapshot.dataset;
  if (shape.with_rows) message.set_row(row);
  message.set_id(dataset.ids.Id(row));
  if (!shape.payload.none) {
    auto& fields = *message.mutable_payload();
    for (auto& [name, value] : ReadSelected(dataset.payload, row, shape.payload)) {
      FillValue(std::move(value), fields[std::move(name)]);
    }
  }
  if (shape.with_vectors) {
    const std::span<const float> vector = dataset.vectors.view()[row];
    message.mutable_vector()->mutable_values()->Add(vector.begin(), vector.end());
    message.mutable_vector()->set_as_stored(true);
  }
}

}  // namespace

void FillValue(PayloadValue&& value, v1::PayloadValue& message) {
  std::visit(ValueFiller{message}, std::move(value.value));
}

void ResponseBuilder::FillHits(std::span<const Hit> hits, std::uint32_t offset,
                               google::protobuf::RepeatedPtrField<v1::Hit>& messages) const {
  messages.Reserve(static_cast<int>(hits.size()));
  std::uint32_t rank = offset;
  for (const Hit& hit : hits) {
    v1::Hit& message = *messages.Add();
    message.set_rank(++rank);
    message.set_score(hit.score);
    FillRow(snapshot_, shape_, hit.row, message);
  }
}

void ResponseBuilder::FillItem(Row row, v1::Item& message) const {
  FillRow(snapshot_, shape_, row, message);
}

std::uint64_t ResponseBuilder::UpperBoundBytes(Row row) const {
  const data::Dataset& dataset = *snapshot_.dataset;
  std::uint64_t bytes = kRowOverheadMax + dataset.ids.IdBytes(row);
  if (!shape_.payload.none) bytes += dataset.payload.RowBytes(row);
  if (shape_.with_vectors) bytes += snapshot_.dim() * sizeof(float);
  return bytes;
}

// All but the rank and the score.
std::uint64_t ResponseBuilder::LowerBoundBytes(Row row) const {
  v1::Hit hit;
  FillRow(snapshot_, shape_, row, hit);
  return kRowOverheadMin + hit.ByteSizeLong();
}

absl::Status ResponseBuilder::CheckRowBytes(std::span<const Row> rows, std::uint64_t bytes_max,
                                            std::uint64_t counted_max, std::string_view remedy,
                                            std::uint64_t other_bytes) const {
  std::uint64_t bytes = other_bytes;
  for (const Row row : rows) {
    bytes += UpperBoundBytes(row);
    if (bytes > bytes_max) break;
  }
  if (bytes <= bytes_max) return absl::OkStatus();

  // The bound counts every field of a row; the selected ones may be far smaller.
  bytes = other_bytes;
  for (const Row row : rows) {
    if (bytes > counted_max) break;
    bytes += LowerBoundBytes(row);
  }
  if (bytes <= bytes_max) return absl::OkStatus();
  return ReplyTooLargeToBuild(std::min(bytes, counted_max), bytes_max, remedy);
}

void FillBriefReceipt(const observe::Receipt& receipt, const engine::Snapshot& snapshot,
                      std::uint64_t total_us, v1::Receipt& message) {
  message.set_backend(KindOf(receipt.served_by->info));
  message.set_snapshot_id(snapshot.id);
  message.set_exact(true);
  message.set_total_us(total_us);
}

void FillReceiptDetail(const observe::Receipt& receipt, const engine::Snapshot& snapshot,
                       std::string_view request_id, v1::Receipt& message) {
  message.set_device(receipt.served_by->info.device);
  for (const std::string_view engine : receipt.engines) message.add_engines(std::string(engine));
  message.set_reason(receipt.served_by->reason);
  message.set_snapshot_version(snapshot.version);
  message.set_request_id(std::string(request_id));
  message.set_batch_size(receipt.batch_size);
  message.set_queue_us(receipt.queue_us);
  message.set_compute_us(receipt.compute_us);
  message.set_rows_scanned(receipt.cost.rows_scanned);
  message.set_rows_rescored(receipt.cost.rows_rescored);
  message.set_rescans(receipt.cost.rescans);
  message.set_rounds(receipt.cost.rounds);
  message.set_device_bytes(receipt.device_bytes);
  message.set_device_bytes_peak(receipt.device_bytes_peak);
}

}  // namespace simile::service
