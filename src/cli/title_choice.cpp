#include "cli/title_choice.h"

namespace simile::cli {

TitleChoice ChooseByTitle(const v1::LookupResponse& found) {
  if (found.match_count() == 0 || found.matches().empty()) return TitleUnknown{};
  const bool one_whole = found.whole_match_count() == 1;
  const bool only_match = found.match_count() == 1;
  if (!one_whole && !only_match) return TitleAmbiguous{};
  return TitleFound{found.matches(0).item()};  // whole matches come first
}

}  // namespace simile::cli
