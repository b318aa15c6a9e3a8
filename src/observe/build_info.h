#pragma once

#include <span>
#include <string_view>

namespace simile::observe {

// A library whose headers, which say their version, this program was compiled with.
struct UsedLibrary {
  std::string_view name;     // "gRPC", as docs/dependencies.md has it
  std::string_view version;  // "1.51.1"
};

// What this program was built from, and how.
struct BuildInfo {
  std::string_view version;     // "0.1.0"
  std::string_view build;       // "v0.1.0-12-g0123456789ab"; "unknown" outside a git checkout
  std::string_view commit;      // "0123456789ab..."; empty outside a git checkout
  std::string_view compiler;    // "GNU 12.2.0"
  std::string_view build_type;  // "Release"
  std::span<const UsedLibrary> libraries = {};
};

BuildInfo GetBuildInfo();

}  // namespace simile::observe
