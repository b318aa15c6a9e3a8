#include "service/reference_reply.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include "data/formats/json_reader.h"
#include "data/payload_message.h"
#include "service/replies/receipt_encoding.h"

namespace simile::service {
namespace {

template <class Message>
void FillRow(const engine::Snapshot& snapshot, const RowShape& shape, Row row, Message& message) {
  const data::Dataset& dataset = *snapshot.dataset;
  message.set_id(dataset.ids.Id(row));
  if (!shape.payload.none) {
    const PayloadObject object = dataset.payload.Read(row);
    for (std::uint32_t number = 0; number < dataset.payload.fields().size(); ++number) {
      const data::FieldInfo& field = dataset.payload.fields()[number];
      if (!shape.payload.Has(number) || (shape.payload.all && field.is_nested)) continue;
      const PayloadValue* const value = data::FindField(object, field.name);
      if (value != nullptr) data::FillMessage(*value, (*message.mutable_payload())[field.name]);
    }
  }
  if (shape.with_vectors) {
    const std::span<const float> vector = dataset.vectors.view()[row];
    message.mutable_vector()->mutable_values()->Add(vector.begin(), vector.end());
    message.mutable_vector()->set_as_stored(true);
  }
  if (shape.with_rows) message.set_row(row);
}

void FillHits(const SearchReply::Parts& parts, std::span<const Hit> hits, std::uint32_t offset,
              google::protobuf::RepeatedPtrField<v1::Hit>& messages) {
  for (const Hit& hit : hits) {
    v1::Hit& message = *messages.Add();
    message.set_rank(++offset);
    message.set_score(hit.score);
    FillRow(parts.receipt.snapshot, parts.shape, hit.row, message);
  }
}

void FillError(const std::string& bytes, google::rpc::Status& error) {
  const bool parsed = error.ParseFromString(bytes);
  assert(parsed);
  static_cast<void>(parsed);
}

void FillResult(const SearchReply::Parts& parts, const ResultPage& page, v1::SearchResult& result) {
  result.set_user_id(std::string(page.user_id));
  if (page.index) result.set_index(*page.index);
  if (!page.error.empty()) return FillError(page.error, *result.mutable_error());
  FillHits(parts, page.hits, page.offset, *result.mutable_hits());
  result.set_score_kind(page.score_kind);
  if (page.rows_passing) result.set_rows_passing(*page.rows_passing);
  std::uint32_t rank = page.offset;
  for (const engine::HitGroup& group : page.groups) {
    v1::HitGroup& message = *result.add_groups();
    message.set_rank(++rank);
    message.set_keyword(group.keyword);
    FillHits(parts, group.hits, 0, *message.mutable_hits());
  }
  if (page.cold_start) {
    result.mutable_cold_start()->set_order(page.cold_start->order ==
                                                   engine::ColdStart::Order::kNewest
                                               ? v1::ColdStart::ORDER_NEWEST
                                               : v1::ColdStart::ORDER_MOST_POPULAR);
    result.mutable_cold_start()->set_field(std::string(page.cold_start->field));
  }
  result.set_seen_count(page.seen_count);
  for (const std::string& note : page.notes) result.add_notes(note);
}

void FillReceipt(const ReceiptParts& parts, v1::Receipt& message) {
  const observe::Receipt& receipt = parts.receipt;
  message.set_backend(ToBackendKind(receipt.served_by->info));
  message.set_snapshot_id(parts.snapshot.id);
  message.set_exact(true);
  message.set_total_us(parts.total_us);
  for (const auto& of_items : parts.item_snapshots) {
    if (!of_items) continue;
    v1::ItemSnapshot& added = *message.add_item_snapshots();
    added.set_collection(of_items->collection().name());
    added.set_snapshot_id(of_items->id());
    added.set_snapshot_version(of_items->version());
  }
  if (parts.is_brief) return;
  message.set_device(receipt.served_by->info.device);
  for (const std::string_view engine : receipt.engines) message.add_engines(std::string(engine));
  message.set_reason(receipt.served_by->reason);
  message.set_snapshot_version(parts.snapshot.version);
  message.set_request_id(std::string(parts.request_id));
  message.set_batch_size(receipt.batch_size);
  message.set_queue_us(receipt.queue_us);
  message.set_compute_us(receipt.compute_us);
  message.set_rows_scanned(receipt.cost.rows_scanned);
  message.set_rows_rescored(receipt.cost.rows_rescored);
  message.set_rescans(receipt.cost.rescans);
  message.set_rounds(receipt.cost.rounds);
  if (receipt.device_us) message.set_device_us(*receipt.device_us);
  message.set_device_memory_bytes(receipt.device_bytes);
  message.set_device_memory_peak_bytes(receipt.device_bytes_peak);
}

v1::LookupMatch::Quality ToQuality(filter::MatchQuality quality) {
  if (quality == filter::MatchQuality::kWhole) return v1::LookupMatch::QUALITY_WHOLE;
  return quality == filter::MatchQuality::kPrefix ? v1::LookupMatch::QUALITY_PREFIX
                                                  : v1::LookupMatch::QUALITY_PART;
}

}  // namespace

template <class Response>
void FillResponse(const SearchReply::Parts& parts, Response& response) {
  for (const ResultPage& page : parts.pages) FillResult(parts, page, *response.add_results());
  FillReceipt(parts.receipt, *response.mutable_receipt());
  response.set_next_page_token(std::string(parts.next_page_token));
  for (const std::string& note : parts.notes) response.add_notes(note);
  for (const v1::SearchResult& result : response.results()) {
    if (result.has_error()) response.set_failed_count(response.failed_count() + 1);
  }
}
template void FillResponse(const SearchReply::Parts&, v1::SearchResponse&);
template void FillResponse(const SearchReply::Parts&, v1::RecommendResponse&);

v1::FetchResponse MakeFetchResponse(const engine::Snapshot& snapshot, const RowShape& shape,
                                    std::span<const FetchedItem> items,
                                    std::span<const std::string> notes) {
  v1::FetchResponse response;
  for (const FetchedItem& item : items) {
    v1::Item& message = *response.add_items();
    if (item.error.empty()) {
      FillRow(snapshot, shape, item.row, message);
      continue;
    }
    message.set_id(item.id);
    FillError(item.error, *message.mutable_error());
    response.set_failed_count(response.failed_count() + 1);
  }
  for (const std::string& note : notes) response.add_notes(note);
  response.set_snapshot_id(snapshot.id);
  response.set_snapshot_version(snapshot.version);
  return response;
}

v1::LookupResponse MakeLookupResponse(const engine::Snapshot& snapshot, const RowShape& shape,
                                      const filter::TextMatches& found,
                                      std::span<const std::string> notes) {
  v1::LookupResponse response;
  for (const std::string& note : notes) response.add_notes(note);
  for (const filter::TextMatch& match : found.first) {
    v1::LookupMatch& message = *response.add_matches();
    message.set_quality(ToQuality(match.quality));
    FillRow(snapshot, shape, match.row, *message.mutable_item());
  }
  response.set_match_count(found.match_count);
  response.set_whole_match_count(found.whole_match_count);
  response.set_snapshot_id(snapshot.id);
  response.set_snapshot_version(snapshot.version);
  return response;
}

std::string FindDifference(const Reply& reply, const google::protobuf::Message& expected) {
  if (reply.bytes() != expected.ByteSizeLong()) {
    return fmt::format("{} bytes, not {}", reply.bytes(), expected.ByteSizeLong());
  }
  constexpr std::size_t kGuardBytes = 16;
  constexpr std::uint8_t kGuard = 0xA5;
  std::vector<std::uint8_t> bytes(reply.bytes() + kGuardBytes, kGuard);
  const auto written = static_cast<std::size_t>(reply.Write(bytes.data()) - bytes.data());
  if (written != reply.bytes()) return fmt::format("wrote {} of {}", written, reply.bytes());
  if (std::count(bytes.end() - kGuardBytes, bytes.end(), kGuard) != kGuardBytes) {
    return "wrote past its end";
  }
  const std::unique_ptr<google::protobuf::Message> parsed(expected.New());
  if (!parsed->ParseFromArray(bytes.data(), static_cast<int>(written))) return "cannot be parsed";
  std::string difference;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  if (differencer.Compare(expected, *parsed)) return {};
  return difference;
}

}  // namespace simile::service
