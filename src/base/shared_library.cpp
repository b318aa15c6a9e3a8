#include "base/shared_library.h"

#include <dlfcn.h>

#include <string_view>

#include <fmt/format.h>

namespace simile::base {

absl::StatusOr<void*> LoadSharedLibrary(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const char* error = dlerror();
  std::string message = error != nullptr ? error : "unknown loader error";
  // The loader gives no error code for a library that is not on its path, only this text. With
  // another name in front, the library is here and one that it needs is not.
  const bool is_missing = message.starts_with(library) &&
                          message.find("No such file or directory") != std::string::npos;
  const std::size_t folder_bytes = library.find_last_of('/') + 1;  // 0 without a folder
  if (is_missing) {
    return absl::NotFoundError(
        fmt::format("{} not found", std::string_view(library).substr(folder_bytes)));
  }
  const std::string folder = library.substr(0, folder_bytes);
  for (std::size_t at = 0; !folder.empty() && (at = message.find(folder)) != std::string::npos;) {
    message.erase(at, folder_bytes);
  }
  return absl::FailedPreconditionError(message);
}

}  // namespace simile::base
