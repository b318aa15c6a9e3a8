#include "base/loaded_libraries.h"

#include <link.h>

#include <cstddef>
#include <filesystem>
#include <system_error>

namespace simile::base {
namespace {

namespace fs = std::filesystem;

int AddLibrary(dl_phdr_info* info, std::size_t /*info_bytes*/, void* result) {
  // The program itself has no name, and the kernel's vdso no folder.
  const fs::path path = info->dlpi_name;
  if (!path.has_parent_path()) return 0;
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  static_cast<std::vector<LoadedLibrary>*>(result)->push_back(
      {path.filename().string(), (error ? path : real).filename().string()});
  return 0;
}

}  // namespace

std::vector<LoadedLibrary> LoadedLibraries() {
  std::vector<LoadedLibrary> result;
  dl_iterate_phdr(AddLibrary, &result);
  return result;
}

}  // namespace simile::base
