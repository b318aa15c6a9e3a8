#pragma once

#include <variant>

#include "simile/v1/lookup.pb.h"

namespace simile::cli {

// Which row a title means.
struct TitleFound {
  v1::Item item;
};
struct TitleAmbiguous {};
struct TitleUnknown {};
using TitleChoice = std::variant<TitleFound, TitleAmbiguous, TitleUnknown>;

// The one row whose whole value is the title; failing that, the only row that contains it.
// Several whole matches, or several parts and no whole one, are for the person to choose from.
TitleChoice ChooseByTitle(const v1::LookupResponse& found);

}  // namespace simile::cli
