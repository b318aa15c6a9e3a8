#include "service/lookup_handlers.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <absl/status/statusor.h>
#include <fmt/format.h>

#include "base/message_text.h"
#include "base/nearest_name.h"
#include "service/guarded.h"
#include "service/response_builder.h"
#include "service/validate_fields.h"
#include "simile/v1/lookup.pb.h"

namespace simile::service {
namespace {

constexpr std::uint32_t kLookupLimitDefault = 20;

// Rows of the ids, in their order.
// Errors: kNotFound for the first unknown id, with the nearest known one when there is one.
absl::StatusOr<std::vector<Row>> FindRows(const engine::Snapshot& snapshot,
                                          const v1::FetchRequest& request) {
  const data::IdIndex& ids = snapshot.dataset->ids;
  std::vector<Row> rows;
  rows.reserve(static_cast<std::size_t>(request.ids_size()));
  for (int index = 0; index < request.ids_size(); ++index) {
    const std::string& id = request.ids(index);
    const auto row = ids.Find(id);
    if (!row) {
      const std::string offer = base::DidYouMean(ids.Nearest(id));
      return absl::NotFoundError(fmt::format("ids[{}]: no item {} in {}{}{}", index,
                                             base::Quoted(id), snapshot.collection,
                                             offer.empty() ? "" : ".", offer));
    }
    rows.push_back(*row);
  }
  return rows;
}

absl::Status Fetch(const LookupParts& parts, const v1::FetchRequest& request,
                   v1::FetchResponse& response) {
  absl::Status valid = ValidateFetch(request, parts.limits);
  if (!valid.ok()) return valid;
  const auto snapshot = parts.store.Pin(request.collection());
  if (!snapshot.ok()) return snapshot.status();
  auto payload = SelectPayload("payload_fields", request.collection(),
                               {request.payload_fields().begin(), request.payload_fields().end()},
                               !request.without_payload(), (*snapshot)->dataset->payload);
  if (!payload.ok()) return payload.status();
  const RowShape shape{*std::move(payload), request.with_vectors()};
  const auto rows = FindRows(**snapshot, request);
  if (!rows.ok()) return rows.status();
  const ResponseBuilder builder(**snapshot, shape);
  absl::Status fits = builder.CheckReplySize(
      *rows, parts.limits.reply_bytes_default,
      "ask for fewer ids a call, name the payload_fields you need, or leave out with_vectors");
  if (!fits.ok()) return fits;
  for (const Row row : *rows) builder.FillItem(row, *response.add_items());
  response.set_snapshot_version((*snapshot)->version);
  return absl::OkStatus();
}

// The field to search: `wanted`, or the collection's first when it is empty.
// Errors: kInvalidArgument when the field cannot be searched, naming those that can.
absl::StatusOr<std::string> LookupField(const engine::Snapshot& snapshot,
                                        const std::string& wanted) {
  const std::vector<std::string>& fields = snapshot.text_index.fields();
  if (fields.empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "field: {} has no field to search; its collection.json may name some as lookup_fields",
        snapshot.collection));
  }
  if (wanted.empty()) return fields.front();
  if (std::find(fields.begin(), fields.end(), wanted) != fields.end()) return wanted;
  return absl::InvalidArgumentError(
      fmt::format("field: {} cannot be searched by {}.{} Fields that can: {}.", snapshot.collection,
                  base::Quoted(wanted), base::DidYouMean(base::NearestName(wanted, fields)),
                  fmt::join(fields, ", ")));
}

v1::LookupMatch::Quality QualityOf(filter::MatchQuality quality) {
  switch (quality) {
    case filter::MatchQuality::kWhole:
      return v1::LookupMatch::WHOLE;
    case filter::MatchQuality::kPrefix:
      return v1::LookupMatch::PREFIX;
    case filter::MatchQuality::kPart:
      return v1::LookupMatch::PART;
  }
  return v1::LookupMatch::QUALITY_UNSPECIFIED;
}

absl::Status Lookup(const LookupParts& parts, const v1::LookupRequest& request,
                    v1::LookupResponse& response) {
  absl::Status valid = ValidateLookup(request, parts.limits);
  if (!valid.ok()) return valid;
  const auto snapshot = parts.store.Pin(request.collection());
  if (!snapshot.ok()) return snapshot.status();
  const auto field = LookupField(**snapshot, request.field());
  if (!field.ok()) return field.status();
  const std::uint32_t limit = request.has_limit() ? request.limit() : kLookupLimitDefault;
  const filter::TextMatches found = (*snapshot)->text_index.Find(*field, request.text(), limit);

  RowShape shape;
  shape.payload.all = true;
  shape.payload.none = (*snapshot)->dataset->payload.row_count() == 0;
  const ResponseBuilder builder(**snapshot, shape);
  std::vector<Row> rows;
  for (const filter::TextMatch& match : found.first) rows.push_back(match.row);
  absl::Status fits = builder.CheckReplySize(rows, parts.limits.reply_bytes_default,
                                             "lower limit or give a longer text");
  if (!fits.ok()) return fits;
  for (const filter::TextMatch& match : found.first) {
    v1::LookupMatch& message = *response.add_matches();
    message.set_quality(QualityOf(match.quality));
    builder.FillItem(match.row, *message.mutable_item());
  }
  response.set_match_count(found.match_count);
  response.set_whole_match_count(found.whole_match_count);
  response.set_snapshot_version((*snapshot)->version);
  return absl::OkStatus();
}

}  // namespace

void HandleFetch(const LookupParts& parts, Call& call, const v1::FetchRequest& request,
                 v1::FetchResponse& response) {
  call.Finish(Guarded([&] { return Fetch(parts, request, response); }));
}

void HandleLookup(const LookupParts& parts, Call& call, const v1::LookupRequest& request,
                  v1::LookupResponse& response) {
  call.Finish(Guarded([&] { return Lookup(parts, request, response); }));
}

}  // namespace simile::service
