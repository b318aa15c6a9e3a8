#pragma once

#include <string_view>

namespace simile::observe {

// The project's version and the commit it was built from ("unknown" outside a git checkout).
struct BuildInfo {
  std::string_view version;  // "0.1.0"
  std::string_view build;    // "v0.1.0-12-g0123456789ab"
};

BuildInfo GetBuildInfo();

}  // namespace simile::observe
