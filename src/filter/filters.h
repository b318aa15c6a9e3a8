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

// Finds the rows of a dataset that pass a filter. Built once for each snapshot; safe to call from
// many threads.
class Filters {
 public:
  // Indexes the payload. Borrows the dataset for its life.
  static std::unique_ptr<const Filters> Create(const data::Dataset& dataset,
                                               std::string collection);

  // The rows that pass. Filters with the same canonical text share a mask while it is cached.
  // Errors: kInvalidArgument, `column N: ` and the reason.
  absl::StatusOr<std::shared_ptr<const RowMask>> Rows(std::string_view filter) const;

  // A field to group rows by.
  // Errors: kInvalidArgument when no row has it, or when its values are not keywords; the message
  //         lists the fields of keywords.
  absl::StatusOr<KeywordField> FindKeywords(std::string_view field) const;

  const PayloadIndex& payload() const { return payload_; }
  // Of the payload index and the cached masks.
  std::uint64_t bytes() const { return payload_.bytes() + cache_.bytes(); }

 private:
  Filters(const data::Dataset& dataset, std::string collection, PayloadIndex payload);

  const data::Dataset& dataset_;
  const std::string collection_;
  const PayloadIndex payload_;
  mutable MaskCache cache_;
};

}  // namespace simile::filter
