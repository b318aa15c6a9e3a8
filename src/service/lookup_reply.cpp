#include "service/lookup_reply.h"

#include <utility>

#include "simile/v1/lookup.pb.h"

namespace simile::service {
namespace {

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

}  // namespace

FetchReply::FetchReply(engine::SnapshotPtr snapshot, RowShape shape, std::vector<FetchedItem> items,
                       std::vector<std::string> notes, std::uint64_t bytes_max,
                       std::uint64_t counted_max)
    : snapshot_(std::move(snapshot)),
      shape_(std::move(shape)),
      items_(std::move(items)),
      notes_(std::move(notes)) {
  CountWithin(bytes_max, counted_max, notes_);
}

template <class Sink>
void FetchReply::EncodeTo(Sink& out) const {
  using Response = v1::FetchResponse;
  std::uint64_t failed = 0;
  for (const FetchedItem& item : items_) {
    if (out.is_full()) return;
    out.Message(Response::kItemsFieldNumber, [&] {
      if (item.error.empty()) return EncodeRow<v1::Item>(out, *snapshot_, shape_, item.row);
      ++failed;
      out.Text(v1::Item::kIdFieldNumber, item.id);
      out.Text(v1::Item::kErrorFieldNumber, item.error);
    });
  }
  out.Text(Response::kSnapshotIdFieldNumber, snapshot_->id);
  out.Number(Response::kSnapshotVersionFieldNumber, snapshot_->version);
  for (const std::string& note : notes_) out.Element(Response::kNotesFieldNumber, note);
  out.Number(Response::kFailedCountFieldNumber, failed);
}

void FetchReply::Encode(ByteCounter& out) const { EncodeTo(out); }
void FetchReply::Encode(WireWriter& out) const { EncodeTo(out); }

LookupReply::LookupReply(engine::SnapshotPtr snapshot, RowShape shape, filter::TextMatches found,
                         std::vector<std::string> notes, std::uint64_t bytes_max,
                         std::uint64_t counted_max, std::string nearest)
    : snapshot_(std::move(snapshot)),
      shape_(std::move(shape)),
      found_(std::move(found)),
      nearest_(std::move(nearest)),
      notes_(std::move(notes)) {
  CountWithin(bytes_max, counted_max, notes_);
}

template <class Sink>
void LookupReply::EncodeTo(Sink& out) const {
  using Response = v1::LookupResponse;
  for (const filter::TextMatch& match : found_.first) {
    if (out.is_full()) return;
    out.Message(Response::kMatchesFieldNumber, [&] {
      out.Number(v1::LookupMatch::kQualityFieldNumber,
                 static_cast<std::uint64_t>(QualityOf(match.quality)));
      out.Message(v1::LookupMatch::kItemFieldNumber,
                  [&] { EncodeRow<v1::Item>(out, *snapshot_, shape_, match.row); });
    });
  }
  out.Number(Response::kMatchCountFieldNumber, found_.match_count);
  out.Number(Response::kWholeMatchCountFieldNumber, found_.whole_match_count);
  out.Text(Response::kSnapshotIdFieldNumber, snapshot_->id);
  out.Number(Response::kSnapshotVersionFieldNumber, snapshot_->version);
  for (const std::string& note : notes_) out.Element(Response::kNotesFieldNumber, note);
  out.Text(Response::kNearestFieldNumber, nearest_);
}

void LookupReply::Encode(ByteCounter& out) const { EncodeTo(out); }
void LookupReply::Encode(WireWriter& out) const { EncodeTo(out); }

}  // namespace simile::service
