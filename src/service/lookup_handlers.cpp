#include "service/handlers.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/status/statusor.h>
#include <fmt/format.h>

#include "base/message_text.h"
#include "base/nearest_name.h"
#include "engine/query/existing_items.h"
#include "engine/query/query_request.h"
#include "engine/query/unknown_ids.h"
#include "google/rpc/status.pb.h"
#include "service/calls/call.h"
#include "service/replies/answer_notes.h"
#include "service/replies/collection_message.h"
#include "service/replies/error_encoding.h"
#include "service/replies/replies.h"
#include "service/requests/answer_options.h"
#include "service/requests/request_fields.h"
#include "simile/v1/lookup.pb.h"

namespace simile::service {
namespace {

constexpr std::uint32_t kLookupLimitDefault = 20;

constexpr std::string_view kFetchRemedy =
    "ask for fewer ids a call, select the payload fields you need or none, leave out with_vectors, "
    "or raise reply_bytes_max";
constexpr std::string_view kLookupRemedy =
    "lower limit, give a longer text, select the payload fields you need or none, leave out "
    "with_vectors, or raise reply_bytes_max";

// The step that a call has not reached when it ends, for the message.
constexpr std::string_view kFetchStep = "the items were found";
constexpr std::string_view kLookupStep = "the text was found";

// What a request is answered from.
struct Source {
  engine::SnapshotPtr snapshot;
  engine::ExistingItems items;
  RowShape shape;
  std::vector<std::string> notes;  // what of the request has no effect
};

// Errors: PERMISSION_DENIED; those of ServedSnapshots::Pin; SNAPSHOT_MISMATCH,
// UNKNOWN_PAYLOAD_FIELD, INVALID_FILTER; those of `work`.
absl::StatusOr<Source> OpenSource(const LookupParts& parts, Call& call,
                                  const std::string& collection, const AnswerOptions& options,
                                  base::LongWork& work) {
  const auto permitted = call.access().Permit(collection);
  if (!permitted.ok()) return permitted.status();
  const auto pinned = parts.snapshots.Pin(*permitted);
  if (!pinned.ok()) return pinned.status();
  absl::Status expected = CheckSnapshotId({"expected_snapshot_id"}, options.expected_snapshot_id,
                                          collection, pinned->id());
  if (!expected.ok()) return expected;
  const auto [snapshot, filters] = pinned->RowsThatPass(options.required_filter);
  const auto own = pinned->Own(work);
  if (!own.ok()) return own.status();
  auto payload = SelectPayload({"payload"}, collection, *options.payload,
                               snapshot->dataset->payload, own->rows.fields());
  if (!payload.ok()) return payload.status();
  auto items = engine::ExistingItems::Create(*snapshot, filters, "required_filter", work);
  if (!items.ok()) return items.status();
  const bool shows_rows = permitted->sees_all_rows();
  std::vector<std::string> notes;
  if (options.with_rows && !shows_rows) notes.push_back(fmt::format("with_rows {}", kNoRowsText));
  return Source{snapshot,
                *std::move(items),
                {*std::move(payload), options.with_vectors, options.with_rows && shows_rows},
                std::move(notes)};
}

// Finds why an id has no row. With partial the error reads as if the request had this id alone.
//   may_offer  whether the error may name the nearest known id
//   error      written
// Errors: those of `work`.
absl::Status ExplainUnknown(const Source& source, const v1::FetchRequest& request, int index,
                            bool may_offer, const Limits& limits, base::LongWork& work,
                            absl::Status& error) {
  error = CheckId({"ids", nullptr, 0}, request.ids(index), limits);
  if (!error.ok()) {
    error = base::WithField(std::move(error), fmt::format("ids[{}]", index));
    return absl::OkStatus();
  }
  const auto text = source.items.ItemNotFoundText(request.ids(index), may_offer, work);
  if (!text.ok()) return text.status();
  const engine::Place place{.list = "ids",
                            .index = static_cast<std::size_t>(index),
                            .alone = request.partial() || request.ids_size() == 1,
                            .part = {}};
  error = engine::ErrorAt(place, {}, base::ErrorReason::kItemNotFound, *text);
  return absl::OkStatus();
}

// Finds the rows of the ids. Returns the places of the unknown ids in the request.
std::vector<int> UnknownPlaces(const Source& source, const v1::FetchRequest& request,
                               std::vector<FetchedItem>& items) {
  std::vector<int> unknown;
  for (int index = 0; index < request.ids_size(); ++index) {
    const auto row = source.items.Find(request.ids(index));
    if (!row) unknown.push_back(index);
    items.push_back({.row = row.value_or(0), .id = {}, .error = {}});
  }
  return unknown;
}

// The error of a call that names several unknown ids.
//   first  the error of the first one
absl::Status NameAll(const absl::Status& first, const Source& source,
                     const v1::FetchRequest& request, const std::vector<int>& places) {
  engine::UnknownIds unknown;
  for (const int index : places) unknown.Add(engine::UnknownIds::Kind::kItem, request.ids(index));
  if (unknown.count() == 1) return first;
  return base::WithMessage(first, unknown.Text(source.snapshot->collection));
}

// The rows of the ids, in the order of the request. With partial, an unknown id has an error in its
// place.
// Errors: ITEM_NOT_FOUND that names the unknown ids; those of `work`.
absl::StatusOr<std::vector<FetchedItem>> FindItems(const Source& source, Call& call,
                                                   const v1::FetchRequest& request,
                                                   const Limits& limits, base::LongWork& work) {
  std::vector<FetchedItem> items;
  items.reserve(static_cast<std::size_t>(request.ids_size()));
  const std::vector<int> unknown = UnknownPlaces(source, request, items);
  std::uint64_t offers_left = engine::OffersMax(*source.snapshot, {});
  for (const int index : unknown) {
    const bool may_offer = request.partial() ? offers_left > 0 : unknown.size() == 1;
    if (offers_left > 0) --offers_left;
    absl::Status error;
    absl::Status status = ExplainUnknown(source, request, index, may_offer, limits, work, error);
    if (!status.ok()) return status;
    if (!request.partial()) return NameAll(error, source, request, unknown);
    FetchedItem& item = items[static_cast<std::size_t>(index)];
    item.id = request.ids(index);
    item.error = EncodeError(error, call.request_id()).SerializeAsString();
  }
  return items;
}

absl::StatusOr<FetchReply> Fetch(const LookupParts& parts, Call& call,
                                 const v1::FetchRequest& request) {
  const auto options = ValidateFetch(request, parts.limits);
  if (!options.ok()) return options.status();
  call.SetReplyLimit(options->reply_bytes_max, kFetchRemedy);
  base::LongWork work = MakeLongWork(call, parts.clock, kFetchStep);
  auto source = OpenSource(parts, call, request.collection(), *options, work);
  if (!source.ok()) return source.status();
  auto items = FindItems(*source, call, request, parts.limits, work);
  if (!items.ok()) return items.status();
  if (absl::Status status = work.Ask(); !status.ok()) return status;  // the reply may be large
  parts.metrics.CountFailedQueries(
      call.method(), static_cast<std::size_t>(std::ranges::count_if(
                         *items, [](const FetchedItem& item) { return !item.error.empty(); })));
  return FetchReply(std::move(source->snapshot), std::move(source->shape), *std::move(items),
                    std::move(source->notes), options->reply_bytes_max,
                    parts.limits.reply_bytes_max);
}

// The fields to search: `wanted` alone, or all of the collection's when it is empty.
// Errors: INVALID_FIELD when the field cannot be searched, naming the fields that can.
absl::StatusOr<std::vector<std::string>> FieldsToSearch(const Source& source,
                                                        const std::string& wanted) {
  const engine::Snapshot& snapshot = *source.snapshot;
  std::vector<std::string> fields = FindLookupFields(snapshot, source.items.fields());
  if (fields.empty()) {
    return base::Error(base::ErrorReason::kInvalidField,
                       fmt::format("{} has no field of texts to search; its collection.json may "
                                   "name text fields as lookup_fields",
                                   snapshot.collection),
                       "field");
  }
  if (wanted.empty()) return fields;
  if (std::find(fields.begin(), fields.end(), wanted) != fields.end()) {
    return std::vector<std::string>{wanted};
  }
  return Refuse({"field"}, "{} cannot be searched by {}.{} Fields that can: {}.",
                snapshot.collection, base::Quoted(wanted),
                base::DidYouMean(base::NearestName(wanted, fields)), fmt::join(fields, ", "));
}

absl::StatusOr<LookupReply> Lookup(const LookupParts& parts, Call& call,
                                   const v1::LookupRequest& request) {
  const auto options = ValidateLookup(request, parts.limits);
  if (!options.ok()) return options.status();
  call.SetReplyLimit(options->reply_bytes_max, kLookupRemedy);
  base::LongWork work = MakeLongWork(call, parts.clock, kLookupStep);
  auto source = OpenSource(parts, call, request.collection(), *options, work);
  if (!source.ok()) return source.status();
  const auto fields = FieldsToSearch(*source, request.field());
  if (!fields.ok()) return fields.status();
  const std::uint32_t limit = request.has_limit() ? request.limit() : kLookupLimitDefault;
  auto found = source->snapshot->text_index->Find(*fields, request.text(), limit,
                                                  source->items.mask().get(), work);
  if (!found.ok()) return found.status();
  std::string nearest;
  if (found->match_count == 0) {
    base::LongWork hint_work = base::LongWork::Within(base::LongWork::kHintNs);
    nearest = source->snapshot->text_index
                  ->Nearest(*fields, request.text(), source->items.mask().get(), hint_work)
                  .value_or("");
  }
  return LookupReply(std::move(source->snapshot), std::move(source->shape), *std::move(found),
                     std::move(source->notes), options->reply_bytes_max,
                     parts.limits.reply_bytes_max, std::move(nearest));
}

}  // namespace

void HandleFetch(const LookupParts& parts, Call& call, const v1::FetchRequest& request) {
  FinishWithReply(call, [&] { return Fetch(parts, call, request); });
}

void HandleLookup(const LookupParts& parts, Call& call, const v1::LookupRequest& request) {
  FinishWithReply(call, [&] { return Lookup(parts, call, request); });
}

}  // namespace simile::service
