#include "service/search_reply.h"

#include <algorithm>

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
    out_.Message(Response::kReceiptFieldNumber, [&] { EncodeReceipt(out_, parts_.receipt); });
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
        EncodeRow<v1::Hit>(out_, parts_.receipt.snapshot, parts_.shape, hit.row);
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
