#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "filter/payload_index.h"

namespace simile::filter {

// The fields that exist for a caller: all fields, or the fields that at least one of the caller's
// rows has. A field that only other rows have is unknown here. Borrows the index. Cheap to copy;
// safe to share.
class PayloadView {
 public:
  // For each field of the index, in the same order: whether the field exists for the caller.
  using Visible = std::shared_ptr<const std::vector<bool>>;

  // All fields. Implicit, since most callers see whole payloads.
  PayloadView(const PayloadIndex& payload)  // NOLINT(google-explicit-constructor)
      : payload_(&payload) {}
  PayloadView(const PayloadIndex& payload, Visible visible)
      : payload_(&payload), visible_(std::move(visible)) {}

  bool has_all() const { return visible_ == nullptr; }
  // The field of this name; null when the field does not exist for the caller.
  const Field* Find(std::string_view name) const {
    const Field* const field = payload_->Find(name);
    return field != nullptr && Has(*field) ? field : nullptr;
  }
  // The fields that exist for the caller, in the order of their names.
  std::vector<std::reference_wrapper<const Field>> fields() const {
    std::vector<std::reference_wrapper<const Field>> fields;
    for (const Field& field : payload_->fields()) {
      if (Has(field)) fields.emplace_back(field);
    }
    return fields;
  }

 private:
  bool Has(const Field& field) const {
    return has_all() || (*visible_)[static_cast<std::size_t>(&field - payload_->fields().data())];
  }

  const PayloadIndex* payload_;
  Visible visible_;  // null for all
};

}  // namespace simile::filter
