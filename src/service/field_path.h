#pragma once

#include <string_view>

#include <fmt/format.h>

namespace simile::service {

// A field of a request as messages name it: "queries[3].exclude_ids[7]". Formatted only when a
// message needs it, so checking a valid request formats nothing. Borrows its name and its parent.
struct FieldPath {
  std::string_view name;
  const FieldPath* parent = nullptr;
  int index = -1;  // in a repeated field; -1 for none
};

}  // namespace simile::service

template <>
struct fmt::formatter<simile::service::FieldPath> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  format_context::iterator format(const simile::service::FieldPath& path,
                                  format_context& context) const {
    if (path.parent != nullptr) {
      context.advance_to(fmt::format_to(format(*path.parent, context), "."));
    }
    context.advance_to(fmt::format_to(context.out(), "{}", path.name));
    return path.index < 0 ? context.out() : fmt::format_to(context.out(), "[{}]", path.index);
  }
};
