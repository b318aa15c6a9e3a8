#include "service/search_reply.h"

#include <algorithm>

#include "service/backend_kind.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

// One encoding for both methods.
static_assert(int{v1::SearchResponse::kResultsFieldNumber} ==
              int{v1::RecommendResponse::kResultsFieldNumber});
static_assert(int{v1::SearchResponse::kReceiptFieldNumber} ==
              int{v1::RecommendResponse::kReceiptFieldNumber});
static_assert(int{v1::SearchResponse::kNextPageTokenFieldNumber} ==
              int{v1::RecommendResponse::kNextPageTokenFieldNumber});
static_assert(int{v1::SearchResponse::kNotesFieldNumber} ==
              int{v1::RecommendResponse::kNotesFieldNumber});
static_assert(int{v1::SearchResponse::kFailedCountFieldNumber} ==
              int{v1::RecommendResponse::kFailedCountFieldNumber});
static_assert(int{v1::SearchResponse::kColumnsFieldNumber} ==
              int{v1::RecommendResponse::kColumnsFieldNumber});

v1::ColdStart::Order OrderOf(query::ColdStart::Order order) {
  switch (order) {
    case query::ColdStart::Order::kNewest:
      return v1::ColdStart::ORDER_NEWEST;
    case query::ColdStart::Order::kMostPopular:
      return v1::ColdStart::ORDER_MOST_POPULAR;
  }
  return v1::ColdStart::ORDER_UNSPECIFIED;
}

// Passes the parts of a response to a sink.
template <class Sink>
class ResponseEncoder {
 public:
  ResponseEncoder(const SearchReply::Parts& parts, Sink& out) : parts_(parts), out_(out) {}

  void Encode() {
    using Response = v1::SearchResponse;
    for (const ResultPage& page : parts_.pages) {
      if (out_.is_full()) return;
      out_.Message(Response::kResultsFieldNumber, [&] { EncodeResult(page); });
    }
    out_.Message(Response::kReceiptFieldNumber, [&] { EncodeReceipt(); });
    out_.Text(Response::kNextPageTokenFieldNumber, parts_.next_page_token);
    if (parts_.instead_of_notes) {
      out_.Text(Response::kNotesFieldNumber, *parts_.instead_of_notes);
    } else {
      EncodeNotes(Response::kNotesFieldNumber, parts_.notes);
    }
    out_.Number(Response::kFailedCountFieldNumber,
                static_cast<std::uint64_t>(std::ranges::count_if(
                    parts_.pages, [](const ResultPage& page) { return !page.error.empty(); })));
    if (parts_.columns == nullptr) return;
    out_.Message(Response::kColumnsFieldNumber, [&] { parts_.columns->Encode(out_); });
  }

 private:
  //   field   of hits, in the message around them
  //   offset  how many better hits are left out
  void EncodeHits(int field, std::span<const Hit> hits, std::uint32_t offset) {
    std::uint32_t rank = offset;
    for (const Hit& hit : hits) {
      if (out_.is_full()) return;
      out_.Message(field, [&] {
        out_.Number(v1::Hit::kRankFieldNumber, ++rank);
        out_.Float(v1::Hit::kScoreFieldNumber, hit.score);
        EncodeRow<v1::Hit>(out_, parts_.snapshot, parts_.shape, hit.row);
      });
    }
  }

  void EncodeResult(const ResultPage& page) {
    using Result = v1::SearchResult;
    if (page.error.empty()) EncodeAnswer(page);
    out_.Text(Result::kUserIdFieldNumber, page.user_id);
    out_.Text(Result::kErrorFieldNumber, page.error);
    if (page.index) out_.Number(Result::kIndexFieldNumber, *page.index);
  }

  void EncodeAnswer(const ResultPage& page) {
    using Result = v1::SearchResult;
    if (parts_.columns == nullptr) EncodeHits(Result::kHitsFieldNumber, page.hits, page.offset);
    out_.Number(Result::kScoreKindFieldNumber, static_cast<std::uint64_t>(page.score_kind));
    if (page.rows_passing) {
      out_.PresentNumber(Result::kRowsPassingFieldNumber, *page.rows_passing);
    }
    if (parts_.columns == nullptr) EncodeGroups(page);
    if (page.cold_start) {
      out_.Message(Result::kColdStartFieldNumber, [&] {
        out_.Number(v1::ColdStart::kOrderFieldNumber,
                    static_cast<std::uint64_t>(OrderOf(page.cold_start->order)));
        out_.Text(v1::ColdStart::kFieldFieldNumber, page.cold_start->field);
      });
    }
    out_.Number(Result::kSeenCountFieldNumber, page.seen_count);
    if (!parts_.instead_of_notes) EncodeNotes(Result::kNotesFieldNumber, page.notes);
  }

  void EncodeGroups(const ResultPage& page) {
    std::uint32_t rank = page.offset;
    for (const engine::HitGroup& group : page.groups) {
      if (out_.is_full()) return;
      out_.Message(v1::SearchResult::kGroupsFieldNumber, [&] {
        out_.Number(v1::HitGroup::kRankFieldNumber, ++rank);
        out_.Text(v1::HitGroup::kKeywordFieldNumber, group.keyword);
        EncodeHits(v1::HitGroup::kHitsFieldNumber, group.hits, 0);
      });
    }
  }

  void EncodeNotes(int field, std::span<const std::string> notes) {
    for (const std::string& note : notes) out_.Element(field, note);
  }

  void EncodeReceipt() {
    using Receipt = v1::Receipt;
    out_.Number(Receipt::kBackendFieldNumber,
                static_cast<std::uint64_t>(KindOf(parts_.receipt.served_by->info)));
    out_.Text(Receipt::kSnapshotIdFieldNumber, parts_.snapshot.id);
    out_.Number(Receipt::kExactFieldNumber, 1);
    out_.Number(Receipt::kTotalUsFieldNumber, parts_.total_us);
    for (const auto& of_items : parts_.item_snapshots) {
      if (of_items) EncodeItemSnapshot(*of_items);
    }
    if (!parts_.brief_receipt) EncodeReceiptDetail();
  }

  void EncodeItemSnapshot(const PermittedSnapshot& snapshot) {
    out_.Message(v1::Receipt::kItemSnapshotsFieldNumber, [&] {
      out_.Text(v1::ItemSnapshot::kCollectionFieldNumber, snapshot.collection().name());
      out_.Text(v1::ItemSnapshot::kSnapshotIdFieldNumber, snapshot.id());
      out_.Number(v1::ItemSnapshot::kSnapshotVersionFieldNumber, snapshot.version());
    });
  }

  void EncodeReceiptDetail() {
    using Receipt = v1::Receipt;
    const observe::Receipt& receipt = parts_.receipt;
    out_.Text(Receipt::kDeviceFieldNumber, receipt.served_by->info.device);
    for (const std::string_view engine : receipt.engines) {
      out_.Element(Receipt::kEnginesFieldNumber, engine);
    }
    if (parts_.sees_all_rows) {
      out_.Text(Receipt::kReasonFieldNumber, receipt.served_by->reason);
    }
    out_.Number(Receipt::kSnapshotVersionFieldNumber, parts_.snapshot.version);
    out_.Text(Receipt::kRequestIdFieldNumber, parts_.request_id);
    if (parts_.sees_all_rows) EncodeCost();
    out_.Number(Receipt::kQueueUsFieldNumber, receipt.queue_us);
    out_.Number(Receipt::kComputeUsFieldNumber, receipt.compute_us);
    if (!parts_.sees_all_rows || !parts_.sees_all_collections) return;
    out_.Number(Receipt::kDeviceMemoryBytesFieldNumber, receipt.device_bytes);
    out_.Number(Receipt::kDeviceMemoryPeakBytesFieldNumber, receipt.device_bytes_peak);
  }

  // What grows with the rows of the collection, and with the calls of others.
  void EncodeCost() {
    using Receipt = v1::Receipt;
    const observe::Receipt& receipt = parts_.receipt;
    out_.Number(Receipt::kBatchSizeFieldNumber, receipt.batch_size);
    out_.Number(Receipt::kRowsScannedFieldNumber, receipt.cost.rows_scanned);
    out_.Number(Receipt::kRowsRescoredFieldNumber, receipt.cost.rows_rescored);
    out_.Number(Receipt::kRescansFieldNumber, receipt.cost.rescans);
    out_.Number(Receipt::kRoundsFieldNumber, receipt.cost.rounds);
    if (receipt.device_us) out_.PresentNumber(Receipt::kDeviceUsFieldNumber, *receipt.device_us);
  }

  const SearchReply::Parts& parts_;
  Sink& out_;
};

}  // namespace

SearchReply::SearchReply(const Parts& parts, std::uint64_t counted_max) : parts_(parts) {
  Count(counted_max);
}

void SearchReply::Encode(ByteCounter& out) const { ResponseEncoder(parts_, out).Encode(); }
void SearchReply::Encode(WireWriter& out) const { ResponseEncoder(parts_, out).Encode(); }

}  // namespace simile::service
