#pragma once

#include <string>
#include <string_view>

#include "filter/payload_view.h"

namespace simile::filter {

// The message about a field that no row has: `films has no field "genre". Did you mean "genres"?
// Fields: cast, genres, year.`
std::string UnknownField(std::string_view collection, std::string_view field,
                         const PayloadView& payload);

}  // namespace simile::filter
