#pragma once

#include <filesystem>
#include <string>

namespace simile::cli {

// FOLDER as NAME=FOLDER, named as the folder is; NAME=FOLDER as it is.
inline std::string NamedFolder(const std::string& collection) {
  if (collection.find('=') != std::string::npos) return collection;
  const std::filesystem::path folder = (std::filesystem::path(collection) / "").parent_path();
  return folder.filename().string() + '=' + collection;
}

}  // namespace simile::cli
