#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "engine/search/resolved_query.h"
#include "query/explanation.h"
#include "service/encoded_reply.h"
#include "service/receipt_encoding.h"

namespace simile::service {

// What an Explain keeps until the query is answered.
struct ExplainedQuery {
  std::vector<query::CheckedItem> items;
  query::AnswerCriteria criteria;
};

// Why one item is in an answer, or is not. Borrows all but the text.
struct ItemExplanation {
  const query::CheckedItem& item;           // with all its reasons
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
    const query::AnswerCriteria& criteria;
    v1::ScoreKind score_kind{};
    std::optional<float> score_needed;
    ReceiptParts receipt;
    std::span<const std::string> notes;
  };

  //   counted_max  where counting ends (Reply::is_exact)
  ExplainReply(const Parts& parts, std::uint64_t counted_max);

 private:
  void Encode(ByteCounter& out) const override;
  void Encode(WireWriter& out) const override;

  const Parts parts_;
};

}  // namespace simile::service
