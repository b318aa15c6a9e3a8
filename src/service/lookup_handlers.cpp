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
#include "service/call_work.h"
#include "service/collection_message.h"
#include "service/finish_with_reply.h"
#include "service/lookup_reply.h"
#include "service/refuse.h"
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

// What a call that is over has not reached.
constexpr std::string_view kFetchStep = "the items were found";
constexpr std::string_view kLookupStep = "the text was found";

// What a request is answered from.
struct Source {
  engine::SnapshotPtr snapshot;
  query::ExistingItems items;
  RowShape shape;
};

// Errors: PERMISSION_DENIED; those of ServedSnapshots::Pin; SNAPSHOT_MISMATCH,
// UNKNOWN_PAYLOAD_FIELD, INVALID_FILTER; work's.
absl::StatusOr<Source> SourceOf(const LookupParts& parts, Call& call, const std::string& collection,
                                const AnswerOptions& options, base::LongWork& work) {
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
  auto items = query::ExistingItems::Create(*snapshot, filters, "required_filter", work);
  if (!items.ok()) return items.status();
  return Source{
      snapshot,
      *std::move(items),
      {*std::move(payload), options.with_vectors, options.with_rows && permitted->sees_all_rows()}};
}

// Rows of the ids, in their order.
// Errors: ITEM_NOT_FOUND for the first unknown id; work's.
absl::StatusOr<std::vector<Row>> FindRows(const Source& source, const v1::FetchRequest& request,
                                          base::LongWork& work) {
  std::vector<Row> rows;
  rows.reserve(static_cast<std::size_t>(request.ids_size()));
  for (int index = 0; index < request.ids_size(); ++index) {
    const std::string& id = request.ids(index);
    const auto row = source.items.Find(id);
    if (!row) {
      const auto text = source.items.ItemNotFoundText(id, work);
      if (!text.ok()) return text.status();
      return RefuseFor(base::ErrorReason::kItemNotFound, {"ids", nullptr, index}, "{}", *text);
    }
    rows.push_back(*row);
  }
  return rows;
}

absl::StatusOr<FetchReply> Fetch(const LookupParts& parts, Call& call,
                                 const v1::FetchRequest& request) {
  const auto options = ValidateFetch(request, parts.limits);
  if (!options.ok()) return options.status();
  call.SetReplyLimit(options->reply_bytes_max, kFetchRemedy);
  base::LongWork work = WorkOf(call, parts.clock, kFetchStep);
  auto source = SourceOf(parts, call, request.collection(), *options, work);
  if (!source.ok()) return source.status();
  auto rows = FindRows(*source, request, work);
  if (!rows.ok()) return rows.status();
  if (absl::Status status = work.Ask(); !status.ok()) return status;  // the reply may be large
  return FetchReply(std::move(source->snapshot), std::move(source->shape), *std::move(rows),
                    parts.limits.reply_bytes_max);
}

// The field to search: `wanted`, or the collection's first when it is empty.
// Errors: INVALID_FIELD when the field cannot be searched, naming those that can.
absl::StatusOr<std::string> LookupField(const Source& source, const std::string& wanted) {
  const engine::Snapshot& snapshot = *source.snapshot;
  const std::vector<std::string> fields = LookupFieldsOf(snapshot, source.items.fields());
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

absl::StatusOr<LookupReply> Lookup(const LookupParts& parts, Call& call,
                                   const v1::LookupRequest& request) {
  const auto options = ValidateLookup(request, parts.limits);
  if (!options.ok()) return options.status();
  call.SetReplyLimit(options->reply_bytes_max, kLookupRemedy);
  base::LongWork work = WorkOf(call, parts.clock, kLookupStep);
  auto source = SourceOf(parts, call, request.collection(), *options, work);
  if (!source.ok()) return source.status();
  const auto field = LookupField(*source, request.field());
  if (!field.ok()) return field.status();
  const std::uint32_t limit = request.has_limit() ? request.limit() : kLookupLimitDefault;
  auto found = source->snapshot->text_index->Find(*field, request.text(), limit,
                                                  source->items.mask().get(), work);
  if (!found.ok()) return found.status();
  return LookupReply(std::move(source->snapshot), std::move(source->shape), *std::move(found),
                     parts.limits.reply_bytes_max);
}

}  // namespace

void HandleFetch(const LookupParts& parts, Call& call, const v1::FetchRequest& request) {
  FinishWithReply(call, [&] { return Fetch(parts, call, request); });
}

void HandleLookup(const LookupParts& parts, Call& call, const v1::LookupRequest& request) {
  FinishWithReply(call, [&] { return Lookup(parts, call, request); });
}

}  // namespace simile::service
