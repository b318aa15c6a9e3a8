#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "engine/query/explanation.h"
#include "engine/query/query_request.h"
#include "engine/search/resolved_query.h"
#include "engine/snapshots/snapshot.h"
#include "filter/text_index.h"
#include "service/calls/call.h"
#include "service/replies/hit_columns.h"
#include "service/replies/receipt_encoding.h"
#include "service/replies/row_encoding.h"
#include "service/replies/wire_writer.h"
#include "simile/hits.h"

namespace simile::service {

// A response that is encoded by passing its parts to the sinks of wire_writer.h.
class EncodedReply : public Reply {
 public:
  std::size_t bytes() const final { return sizes_.bytes; }
  bool is_exact() const final { return is_exact_; }
  std::uint8_t* Write(std::uint8_t* out) const final {
    WireWriter writer(sizes_, out);
    Encode(writer);
    return writer.end();
  }

 protected:
  // Both make the same calls on their sinks.
  virtual void Encode(ByteCounter& out) const = 0;
  virtual void Encode(WireWriter& out) const = 0;

  // Counts the bytes. The reply's constructor calls it, and again after it has dropped a part.
  //   counted_max  counting stops beyond it (Reply::is_exact)
  void Count(std::uint64_t counted_max) {
    sizes_.bytes = 0;
    sizes_.messages.clear();
    ByteCounter counter(sizes_, counted_max);
    Encode(counter);
    is_exact_ = !counter.is_full();
    sizes_.bytes = std::min(sizes_.bytes, counted_max + 1);
  }
  // Counts the bytes. A reply of more than bytes_max loses its notes and is counted again.
  void CountWithin(std::uint64_t bytes_max, std::uint64_t counted_max,
                   std::vector<std::string>& notes) {
    Count(counted_max);
    if (bytes() <= bytes_max || notes.empty()) return;
    notes.clear();
    Count(counted_max);
  }

 private:
  WireSizes sizes_;
  bool is_exact_ = true;
};

// The answer to one query, without the first `offset` hits or groups.
struct ResultPage {
  std::span<const Hit> hits;
  std::span<const engine::HitGroup> groups;
  std::uint32_t offset = 0;  // hits or groups skipped: the first rank is offset + 1
  v1::ScoreKind score_kind{};
  std::optional<std::uint64_t> rows_passing;    // that pass the filters; nothing without a filter
  std::optional<engine::ColdStart> cold_start;  // how a cold start ordered the rows
  std::string_view user_id;                     // of Recommend
  std::uint32_t seen_count = 0;                 // of Recommend: items that the user has seen
  // For notes.
  bool filtered = false;             // by a filter of the query or the options
  std::uint64_t excluded_count = 0;  // excluded rows that pass the filters
  std::size_t found_count = 0;       // hits or groups, also the ones that the offset skips
  std::size_t unlisted_count = 0;    // hits of a cold start that have no value in its order
  // With partial: why there is no answer, as a serialized google.rpc.Status. Of the other fields
  // only user_id and index are sent then. Empty for an answer.
  std::string error;
  std::vector<std::string> notes;      // what had no effect, and what of the answer was cut
  std::optional<std::uint32_t> index;  // with partial: of the query in the request
};

// The response of a Search or Recommend in wire form. Ids, payload and vectors are copied from the
// snapshot: nothing is decoded or allocated for a row.
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
    // Replaces these notes and the notes of all pages by this note; an empty one leaves all notes
    // out.
    std::optional<std::string_view> instead_of_notes = std::nullopt;
  };

  // Counts the bytes, in one walk over the rows.
  //   counted_max  counting stops beyond it (Reply::is_exact)
  SearchReply(const Parts& parts, std::uint64_t counted_max);

 private:
  void Encode(ByteCounter& out) const override;
  void Encode(WireWriter& out) const override;

  const Parts parts_;
};

// The row of an id, or why there is none.
struct FetchedItem {
  Row row = 0;
  std::string id;     // of an unknown item; empty for a row
  std::string error;  // a serialized google.rpc.Status; empty for a row
};

// The response of a Fetch in wire form, made as a SearchReply is. Drops its notes if it exceeds
// bytes_max with them.
class FetchReply final : public EncodedReply {
 public:
  //   notes        what of the request had no effect
  //   bytes_max    of the response
  //   counted_max  counting stops beyond it (Reply::is_exact)
  FetchReply(engine::SnapshotPtr snapshot, RowShape shape, std::vector<FetchedItem> items,
             std::vector<std::string> notes, std::uint64_t bytes_max, std::uint64_t counted_max);

 private:
  void Encode(ByteCounter& out) const override;
  void Encode(WireWriter& out) const override;
  template <class Sink>
  void EncodeTo(Sink& out) const;

  engine::SnapshotPtr snapshot_;
  RowShape shape_;
  std::vector<FetchedItem> items_;
  std::vector<std::string> notes_;
};

// The response of a Lookup in wire form; parameters as for FetchReply.
class LookupReply final : public EncodedReply {
 public:
  LookupReply(engine::SnapshotPtr snapshot, RowShape shape, filter::TextMatches found,
              std::vector<std::string> notes, std::uint64_t bytes_max, std::uint64_t counted_max,
              std::string nearest = {});

 private:
  void Encode(ByteCounter& out) const override;
  void Encode(WireWriter& out) const override;
  template <class Sink>
  void EncodeTo(Sink& out) const;

  engine::SnapshotPtr snapshot_;
  RowShape shape_;
  filter::TextMatches found_;
  std::string nearest_;
  std::vector<std::string> notes_;
};

// What an Explain keeps until the query is answered.
struct ExplainedQuery {
  std::vector<engine::CheckedItem> items;
  engine::AnswerCriteria criteria;
};

// Why one item is in an answer, or is not. Borrows all but the text.
struct ItemExplanation {
  const engine::CheckedItem& item;          // with all its reasons
  const engine::RowPlace* place = nullptr;  // null for an item that was not compared
  std::string text;
};

// Explains each item.
//   query   its items get the reasons that need the answer
//   result  of the query; borrowed
// Errors: INTERNAL when the answer contradicts the scores of all rows.
absl::StatusOr<std::vector<ItemExplanation>> ExplainItems(const engine::Snapshot& snapshot,
                                                          const engine::QueryResult& result,
                                                          ExplainedQuery& query);

// The response of an Explain in wire form.
class ExplainReply final : public EncodedReply {
 public:
  // What it is made from, borrowed.
  struct Parts {
    std::span<const ItemExplanation> explanations;
    const engine::AnswerCriteria& criteria;
    v1::ScoreKind score_kind{};
    std::optional<float> score_needed;
    ReceiptParts receipt;
    std::span<const std::string> notes;
  };

  //   counted_max  counting stops beyond it (Reply::is_exact)
  ExplainReply(const Parts& parts, std::uint64_t counted_max);

 private:
  void Encode(ByteCounter& out) const override;
  void Encode(WireWriter& out) const override;

  const Parts parts_;
};

}  // namespace simile::service
