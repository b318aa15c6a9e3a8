#pragma once

#include <string>
#include <vector>

namespace simile::base {

struct LoadedLibrary {
  std::string name;  // "libz.so.1", as programs ask the loader for it
  std::string file;  // "libz.so.1.2.13", the file that this is
};

// The shared libraries of this process in the order in which they were loaded, the loader itself
// included. Neither text names a folder.
std::vector<LoadedLibrary> LoadedLibraries();

}  // namespace simile::base
