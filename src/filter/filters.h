#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <absl/status/statusor.h>

#include "data/dataset.h"
#include "filter/keyword_field.h"
#include "filter/mask_cache.h"
#include "filter/payload_index.h"
#include "simile/row_mask.h"

namespace simile::filter {

// Answers which rows of a dataset pass a filter. Made once for each snapshot; safe to call from
// many threads.
class Filters {
 public:
  // Indexes the payload. Borrows the dataset for its life.
  // Errors: PayloadIndex::Build's.
  static absl::StatusOr<std::unique_ptr<const Filters>> Create(const data::Dataset& dataset,
                                                               std::string collection);

  // The rows that pass. The same filter, however it is spaced, gets the same mask as long as the
  // cache holds it.
  // Errors: kInvalidArgument, `column N: ` and what is wrong with it.
  absl::StatusOr<std::shared_ptr<const RowMask>> Rows(std::string_view filter) const;

  // A field to group rows by.
  // Errors: kInvalidArgument when no row has it, or when its values are no keywords; the message
  //         names those whose are.
  absl::StatusOr<KeywordField> FindKeywords(std::string_view field) const;

  const PayloadIndex& payload() const { return payload_; }
  // Of the payload index and the masks kept.
  std::uint64_t bytes() const { return payload_.bytes() + cache_.bytes(); }

 private:
  Filters(const data::Dataset& dataset, std::string collection, PayloadIndex payload);

  const data::Dataset& dataset_;
  const std::string collection_;
  const PayloadIndex payload_;
  mutable MaskCache cache_;
};

}  // namespace simile::filter
