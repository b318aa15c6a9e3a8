#pragma once

#include <variant>

#include "simile/v1/lookup.pb.h"

namespace simile::cli {

// The row that a title means.
struct TitleFound {
  v1::Item item;
};
struct TitleAmbiguous {};
struct TitleUnknown {};
using TitleChoice = std::variant<TitleFound, TitleAmbiguous, TitleUnknown>;

// The only row whose whole value is the title, else the only row that contains it. Ambiguous when
// several match whole, or several contain it and none matches whole.
TitleChoice ChooseByTitle(const v1::LookupResponse& found);

}  // namespace simile::cli
