#include "service/export_run.h"

#include <algorithm>
#include <utility>

#include "base/error_detail.h"
#include "base/stable_hash.h"
#include "engine/query/existing_items.h"
#include "filter/filters.h"
#include "service/requests/answer_options.h"
#include "service/requests/page_token.h"
#include "service/requests/request_fields.h"

namespace simile::service {
namespace {

// Estimated times of looking at a row, of comparing a user's id, and of copying an id into the
// request of a part.
constexpr std::uint64_t kRowNs = 2;
constexpr std::uint64_t kUserNs = 50;
constexpr std::uint64_t kSourceNs = 100;

// Hashes which rows and users exist for the caller. The same access has the same hash on every
// server.
std::uint64_t HashAccess(const PermittedCollection& collection) {
  constexpr std::string_view kEnd("\0", 1);
  base::StableHash hash;
  const auto add = [&](std::string_view text) {
    hash.Add(text);
    hash.Add(kEnd);
  };
  const data::UserScope users = collection.users();
  add(collection.required_filter());
  add(users.is_all() ? "all users" : "some users");
  for (const std::string& prefix : users.prefixes()) add(prefix);
  add({});
  for (const std::string& id : users.ids()) add(id);
  return hash.Digest64();
}

absl::Status InSourceFilter(const absl::Status& status) {
  if (status.ok() || base::ReasonOf(status) != base::ErrorReason::kInvalidFilter) return status;
  return RefuseFor(base::ErrorReason::kInvalidFilter, {"source_filter"}, "{}",
                   std::string(status.message()));
}

}  // namespace

absl::Status ExportRun::Begin(const v1::ExportRequest& request,
                              const PermittedCollection& collection, base::LongWork& work) {
  request_ = request;
  absl::Status status = CheckCollectionName({"collection"}, request_.collection(), limits_);
  if (status.ok()) status = CheckOptions();
  if (!status.ok()) return status;
  const std::string cursor = std::move(*request_.mutable_cursor());
  request_.clear_cursor();
  access_hash_ = HashAccess(collection);
  request_hash_ = HashRequest(request_) ^ access_hash_;
  status = ReadCursor(cursor);
  if (!status.ok()) return status;
  v1::SearchOptions& options =
      of_users() ? *recommend_.mutable_options() : *search_.mutable_options();
  options.Swap(request_.mutable_options());
  const auto pinned = Pin(collection);
  if (!pinned.ok()) return pinned.status();
  status = CheckSnapshotId({"options.expected_snapshot_id"}, options.expected_snapshot_id(),
                           collection.name(), pinned->id());
  if (!status.ok()) return status;
  snapshot_id_ = pinned->id();
  options.set_priority(v1::PRIORITY_BULK);
  options.clear_expected_snapshot_id();
  search_.set_collection(collection.name());
  recommend_.set_collection(collection.name());
  return CountSources(*pinned, work);
}

absl::Status ExportRun::CheckOptions() const {
  const v1::SearchOptions& options = request_.options();
  if (!v1::ExportRequest::Sources_IsValid(request_.sources())) {
    return RefuseEnum({"sources"}, request_.sources(), "SOURCES_ITEMS or SOURCES_USERS");
  }
  if (of_users() && !request_.source_filter().empty()) {
    return Refuse({"source_filter"},
                  "a filter tests items, and the sources are users; leave it out");
  }
  if (options.paged() || !options.page_token().empty()) {
    return Refuse({options.paged() ? "options.paged" : "options.page_token"},
                  "an export has no pages; `cursor` continues it");
  }
  if (options.partial()) {
    return Refuse({"options.partial"}, "every source of an export can be answered; leave it out");
  }
  if (options.priority() == v1::PRIORITY_ONLINE) {
    return Refuse({"options.priority"}, "an export is computed with PRIORITY_BULK; leave it out");
  }
  return CheckFilterSize({"source_filter"}, request_.source_filter(), limits_);
}

absl::Status ExportRun::ReadCursor(const std::string& cursor) {
  if (cursor.empty()) return absl::OkStatus();
  constexpr auto kReason = base::ErrorReason::kInvalidPageToken;
  const auto token = ReadPageToken(cursor);
  if (!token.ok() || token->page == 0) {
    return RefuseFor(kReason, {"cursor"},
                     "not the cursor of an export; send the last message's cursor unchanged, or "
                     "leave it out to start from the beginning");
  }
  if (token->request_hash != request_hash_) {
    return RefuseFor(
        kReason, {"cursor"},
        "it belongs to another request, or this caller may see other rows by now; send "
        "the request that it came from, or leave it out to start from the beginning");
  }
  snapshot_id_ = token->snapshot_id;
  progress_.exported_count = token->page;
  return absl::OkStatus();
}

std::string ExportRun::CursorAfterPart() const {
  if (part_progress_.exported_count == source_count_) return {};
  // No row number: it would tell a caller who does not see all rows how many are hidden.
  return WritePageToken({.snapshot_id = snapshot_id_,
                         .page = part_progress_.exported_count,
                         .request_hash = request_hash_});
}

absl::StatusOr<PermittedSnapshot> ExportRun::Pin(const PermittedCollection& collection) const {
  auto pinned = snapshot_id_.empty() ? snapshots_.Pin(collection)
                                     : snapshots_.PinContent(collection, snapshot_id_);
  if (pinned.ok()) snapshots_.Lease(*pinned, limits_.page_lease);
  return pinned;
}

absl::StatusOr<std::shared_ptr<const RowMask>> ExportRun::SourceRows(
    const PermittedSnapshot& pinned, base::LongWork& work) const {
  const auto [snapshot, required] = pinned.RowsThatPass(search_.options().required_filter());
  const auto items =
      engine::ExistingItems::Create(*snapshot, required, "options.required_filter", work);
  if (!items.ok()) return items.status();
  filter::NamedRows rows =
      snapshot->filters->Intersection({"", snapshot->searchable}, items->named_rows());
  if (request_.source_filter().empty()) return rows.rows;
  const auto prepared = snapshot->filters->Prepare(request_.source_filter(), items->fields(), work);
  if (!prepared.ok()) return InSourceFilter(prepared.status());
  absl::Status within = snapshot->filters->CheckLooks(prepared->looks, items->fields());
  if (!within.ok()) return InSourceFilter(within);
  auto passing = snapshot->filters->Rows(*prepared, work);
  if (!passing.ok()) return passing.status();
  return snapshot->filters->Intersection({prepared->text, *std::move(passing)}, rows).rows;
}

template <class Visit>
absl::StatusOr<Row> ExportRun::VisitSources(const PermittedSnapshot& pinned, Row row,
                                            base::LongWork& work, Visit visit) const {
  const auto [snapshot, required] = pinned.RowsThatPass({});
  std::shared_ptr<const RowMask> rows;
  if (!of_users()) {
    auto found = SourceRows(pinned, work);
    if (!found.ok()) return found.status();
    rows = *std::move(found);
  }
  const data::IdIndex& ids = IdsOf(*snapshot);
  const bool all_users = !of_users() || required.users.is_all();
  for (; row < ids.size(); ++row) {
    absl::Status status = work.Did(all_users ? kRowNs : kUserNs);
    if (!status.ok()) return status;
    if (rows != nullptr && !rows->Allows(row)) continue;
    data::IdIndex::Digits digits;
    if (!all_users && !required.users.Has(ids.Id(row, digits))) continue;
    if (!visit(row)) break;
  }
  return row;
}

const data::IdIndex& ExportRun::IdsOf(const engine::Snapshot& snapshot) const {
  return of_users() ? snapshot.dataset->profiles.ids : snapshot.dataset->ids;
}

absl::Status ExportRun::CountSources(const PermittedSnapshot& pinned, base::LongWork& work) {
  const auto visit = [&](Row row) {
    if (source_count_ == progress_.exported_count) progress_.next_row = row;
    ++source_count_;
    return true;
  };
  return VisitSources(pinned, 0, work, visit).status();
}

absl::Status ExportRun::MakePart(std::size_t size, const PermittedCollection& collection,
                                 base::LongWork& work) {
  if (HashAccess(collection) != access_hash_) {
    return base::Error(base::ErrorReason::kPermissionDenied,
                       "this caller may see other rows than when the export began; start again "
                       "without the cursor");
  }
  const auto pinned = Pin(collection);
  if (!pinned.ok()) return pinned.status();
  source_ids_.clear();
  search_.clear_queries();
  recommend_.clear_user_ids();
  const data::IdIndex& ids = IdsOf(*pinned->RowsThatPass({}).snapshot);
  const auto visit = [&](Row row) {
    if (source_ids_.size() == size) return false;
    data::IdIndex::Digits digits;
    source_ids_.emplace_back(ids.Id(row, digits));
    if (of_users()) {
      recommend_.add_user_ids(source_ids_.back());
    } else {
      search_.add_queries()->set_id(source_ids_.back());
    }
    return true;
  };
  const auto next = VisitSources(*pinned, progress_.next_row, work, visit);
  if (!next.ok()) return next.status();
  part_progress_ = {*next, progress_.exported_count + source_ids_.size()};
  part_cursor_ = CursorAfterPart();
  return work.Did(source_ids_.size() * kSourceNs);
}

absl::StatusOr<ValidSearch> ExportRun::ValidPart() const {
  auto valid =
      of_users() ? ValidateRecommend(recommend_, limits_) : ValidateSearch(search_, limits_);
  // The part is searched in the exported content, whatever content is served by now.
  if (valid.ok()) valid->paging.token.emplace().snapshot_id = snapshot_id_;
  return valid;
}

ExportReply::ExportReply(const ExportRun& run, const Reply& answer) : run_(run), answer_(answer) {
  ByteCounter counter(sizes_, answer.bytes());
  Encode(counter);
}

std::uint8_t* ExportReply::Write(std::uint8_t* out) const {
  WireWriter writer(sizes_, out);
  Encode(writer);
  return writer.end();
}

// A RecommendResponse has the fields of a SearchResponse.
template <class Sink>
void ExportReply::Encode(Sink& out) const {
  using Response = v1::ExportResponse;
  for (const std::string& id : run_.source_ids()) out.Element(Response::kSourceIdsFieldNumber, id);
  out.Nested(Response::kAnswerFieldNumber, answer_);
  out.Text(Response::kCursorFieldNumber, run_.part_cursor());
  out.Number(Response::kExportedCountFieldNumber, run_.exported_count());
  out.Number(Response::kSourceCountFieldNumber, run_.source_count());
}

}  // namespace simile::service
