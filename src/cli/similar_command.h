#pragma once

#include <variant>

#include "simile/v1/lookup.pb.h"

namespace simile::cli {

// The item that a title means.
struct TitleFound {
  v1::Item item;
};
struct TitleAmbiguous {};
struct TitleUnknown {};
using TitleChoice = std::variant<TitleFound, TitleAmbiguous, TitleUnknown>;

// Chooses the only item whose whole value is the title, otherwise the only item that contains the
// title. Ambiguous if several items match as a whole, or if none does and several contain the
// title.
TitleChoice ChooseByTitle(const v1::LookupResponse& found);

}  // namespace simile::cli
