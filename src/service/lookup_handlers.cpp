#include "service/lookup_handlers.h"

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
#include "query/existing_items.h"
#include "service/answer_options.h"
#include "service/guarded.h"
#include "service/refuse.h"
#include "service/response_builder.h"
#include "service/validate_fields.h"
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

// What a request is answered from.
struct Source {
  engine::SnapshotPtr snapshot;
  query::ExistingItems items;
  RowShape shape;
};

// Errors: those of the store; SNAPSHOT_MISMATCH, UNKNOWN_PAYLOAD_FIELD, INVALID_FILTER.
absl::StatusOr<Source> SourceOf(const LookupParts& parts, const std::string& collection,
                                const AnswerOptions& options) {
  auto snapshot = parts.store.Pin(collection);
  if (!snapshot.ok()) return snapshot.status();
  absl::Status expected =
      CheckSnapshotId({"expected_snapshot_id"}, options.expected_snapshot_id, **snapshot);
  if (!expected.ok()) return expected;
  auto payload =
      SelectPayload({"payload"}, collection, *options.payload, (*snapshot)->dataset->payload);
  if (!payload.ok()) return payload.status();
  auto items = query::ExistingItems::Create(**snapshot, options.required_filter, "required_filter");
  if (!items.ok()) return items.status();
  return Source{*std::move(snapshot),
                *std::move(items),
                {*std::move(payload), options.with_vectors, options.with_rows}};
}

// Rows of the ids, in their order.
// Errors: ITEM_NOT_FOUND for the first unknown id.
absl::StatusOr<std::vector<Row>> FindRows(const Source& source, const v1::FetchRequest& request) {
  std::vector<Row> rows;
  rows.reserve(static_cast<std::size_t>(request.ids_size()));
  for (int index = 0; index < request.ids_size(); ++index) {
    const std::string& id = request.ids(index);
    const auto row = source.items.Find(id);
    if (!row) {
      return RefuseFor(base::ErrorReason::kItemNotFound, {"ids", nullptr, index}, "{}",
                       source.items.NotFoundText("item", id, source.snapshot->dataset->ids));
    }
    rows.push_back(*row);
  }
  return rows;
}

absl::Status Fetch(const LookupParts& parts, Call& call, const v1::FetchRequest& request,
                   v1::FetchResponse& response) {
  const auto options = ValidateFetch(request, parts.limits);
  if (!options.ok()) return options.status();
  call.SetReplyLimit(options->reply_bytes_max, kFetchRemedy);
  const auto source = SourceOf(parts, request.collection(), *options);
  if (!source.ok()) return source.status();
  const auto rows = FindRows(*source, request);
  if (!rows.ok()) return rows.status();
  const ResponseBuilder builder(*source->snapshot, source->shape);
  absl::Status fits = builder.CheckRowBytes(*rows, options->reply_bytes_max,
                                            parts.limits.reply_bytes_max, kFetchRemedy);
  if (!fits.ok()) return fits;
  for (const Row row : *rows) builder.FillItem(row, *response.add_items());
  response.set_snapshot_id(source->snapshot->id);
  response.set_snapshot_version(source->snapshot->version);
  return absl::OkStatus();
}

// The field to search: `wanted`, or the collection's first when it is empty.
// Errors: INVALID_FIELD when the field cannot be searched, naming those that can.
absl::StatusOr<std::string> LookupField(const engine::Snapshot& snapshot,
                                        const std::string& wanted) {
  const std::vector<std::string>& fields = snapshot.text_index->fields();
  if (fields.empty()) {
    return Refuse({"field"},
                  "{} has no field to search; its collection.json may name some as lookup_fields",
                  snapshot.collection);
  }
  if (wanted.empty()) return fields.front();
  if (std::find(fields.begin(), fields.end(), wanted) != fields.end()) return wanted;
  return Refuse({"field"}, "{} cannot be searched by {}.{} Fields that can: {}.",
                snapshot.collection, base::Quoted(wanted),
                base::DidYouMean(base::NearestName(wanted, fields)), fmt::join(fields, ", "));
}

v1::LookupMatch::Quality QualityOf(filter::MatchQuality quality) {
  switch (quality) {
    case filter::MatchQuality::kWhole:
      return v1::LookupMatch::QUALITY_WHOLE;
    case filter::MatchQuality::kPrefix:
      return v1::LookupMatch::QUALITY_PREFIX;
    case filter::MatchQuality::kPart:
      return v1::LookupMatch::QUALITY_PART;
  }
  return v1::LookupMatch::QUALITY_UNSPECIFIED;
}

absl::Status Lookup(const LookupParts& parts, Call& call, const v1::LookupRequest& request,
                    v1::LookupResponse& response) {
  const auto options = ValidateLookup(request, parts.limits);
  if (!options.ok()) return options.status();
  call.SetReplyLimit(options->reply_bytes_max, kLookupRemedy);
  const auto source = SourceOf(parts, request.collection(), *options);
  if (!source.ok()) return source.status();
  const engine::Snapshot& snapshot = *source->snapshot;
  const auto field = LookupField(snapshot, request.field());
  if (!field.ok()) return field.status();
  const std::uint32_t limit = request.has_limit() ? request.limit() : kLookupLimitDefault;
  const filter::TextMatches found =
      snapshot.text_index->Find(*field, request.text(), limit, source->items.mask().get());

  const ResponseBuilder builder(snapshot, source->shape);
  std::vector<Row> rows;
  for (const filter::TextMatch& match : found.first) rows.push_back(match.row);
  absl::Status fits = builder.CheckRowBytes(rows, options->reply_bytes_max,
                                            parts.limits.reply_bytes_max, kLookupRemedy);
  if (!fits.ok()) return fits;
  for (const filter::TextMatch& match : found.first) {
    v1::LookupMatch& message = *response.add_matches();
    message.set_quality(QualityOf(match.quality));
    builder.FillItem(match.row, *message.mutable_item());
  }
  response.set_match_count(found.match_count);
  response.set_whole_match_count(found.whole_match_count);
  response.set_snapshot_id(snapshot.id);
  response.set_snapshot_version(snapshot.version);
  return absl::OkStatus();
}

}  // namespace

void HandleFetch(const LookupParts& parts, Call& call, const v1::FetchRequest& request,
                 v1::FetchResponse& response) {
  call.Finish(Guarded([&] { return Fetch(parts, call, request, response); }));
}

void HandleLookup(const LookupParts& parts, Call& call, const v1::LookupRequest& request,
                  v1::LookupResponse& response) {
  call.Finish(Guarded([&] { return Lookup(parts, call, request, response); }));
}

}  // namespace simile::service
