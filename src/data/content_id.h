#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/stable_hash.h"
#include "data/folder_fingerprint.h"

namespace simile::data {

// Computes the id of a collection's content from the bytes of its files and their roles, while they
// are read. Names, folders and times do not matter; a byte that no reader needs does. Equal on
// every machine.
class ContentIdBuilder {
 public:
  // The collection has a file of this role, if only an empty one.
  void AddFile(FileRole role);
  // The next bytes of the file. REQUIRES: AddFile(role) was called.
  void AddBytes(FileRole role, std::string_view bytes);

  // Of the files so far: 32 lower-case hex digits.
  std::string Id() const;

 private:
  struct File {
    base::StableHash hash;
    std::uint64_t bytes;
  };
  std::array<std::optional<File>, kFileRoleCount> files_;  // by FileRole
};

}  // namespace simile::data
