#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "base/long_work.h"
#include "filter/expression.h"
#include "filter/payload_view.h"

namespace simile::filter {

// Why no row passes a filter, when the filter names keywords that no row has: `no row has genres
// "Westen"; did you mean "Western"?`. One sentence for each such keyword with a near keyword, at
// most three. Keywords under NOT and != are left out.
//   payload  its keywords are offered: REQUIRES: every row exists for the caller
// Errors: work's. Cost: as NearestSearch::ConsiderText, for each keyword that the filter names and
// each keyword of its field.
absl::StatusOr<std::vector<std::string>> NearValues(const Expression& filter,
                                                    const PayloadView& payload,
                                                    base::LongWork& work);

// The message about a field that no row has: `films has no field "genre". Did you mean "genres"?
// Fields: cast, genres, year.`
std::string UnknownField(std::string_view collection, std::string_view field,
                         const PayloadView& payload);

}  // namespace simile::filter
