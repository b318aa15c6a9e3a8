#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/search/resolved_query.h"
#include "engine/snapshots/snapshot.h"
#include "query/query_request.h"
#include "service/encoded_reply.h"
#include "service/hit_columns.h"
#include "service/receipt_encoding.h"
#include "service/row_encoding.h"
#include "simile/hits.h"

namespace simile::service {

// The answer to one query, without the first `offset` hits or groups.
struct ResultPage {
  std::span<const Hit> hits;
  std::span<const engine::HitGroup> groups;
  std::uint32_t offset = 0;  // hits or groups skipped: the first rank is offset + 1
  v1::ScoreKind score_kind{};
  std::optional<std::uint64_t> rows_passing;   // the filters; nothing without one
  std::optional<query::ColdStart> cold_start;  // how a cold start ordered the rows
  std::string_view user_id;                    // of Recommend
  std::uint32_t seen_count = 0;                // of Recommend: items of the call that the user saw
  // For notes.
  bool filtered = false;             // by a filter of the query or the options
  std::uint64_t excluded_count = 0;  // excluded rows that pass the filters
  std::size_t found_count = 0;       // hits or groups, those that the offset skips included
  std::size_t unlisted_count = 0;    // hits of a cold start that have no value in its order
  // With partial: why there is no answer, as a serialized google.rpc.Status. Of the other fields
  // only user_id and index are sent then. Empty for an answer.
  std::string error;
  std::vector<std::string> notes;      // what had no effect, and what of the answer was cut
  std::optional<std::uint32_t> index;  // with partial: of the query in the request
};

// The response of a Search or Recommend in wire form. Ids, payload and vectors are copied from the
// snapshot, the texts of the receipt from what served it: nothing is decoded or allocated for a
// row.
class SearchReply final : public EncodedReply {
 public:
  // What the response is made from, borrowed.
  struct Parts {
    const RowShape& shape;
    std::span<const ResultPage> pages;    // [queries]
    const HitColumns* columns = nullptr;  // replaces the hits of every page; null for LAYOUT_HITS
    ReceiptParts receipt;
    std::string_view next_page_token;    // empty for none
    std::span<const std::string> notes;  // of the whole call
    // The only note that is sent, in place of these and those of the pages; empty for none at all.
    std::optional<std::string_view> instead_of_notes = std::nullopt;
  };

  // Counts the bytes, in one walk over the rows.
  //   counted_max  where counting ends (Reply::is_exact)
  SearchReply(const Parts& parts, std::uint64_t counted_max);

 private:
  void Encode(ByteCounter& out) const override;
  void Encode(WireWriter& out) const override;

  const Parts parts_;
};

}  // namespace simile::service
