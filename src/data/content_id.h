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
// are read, and from the types of its fields where these are not those of a first load. Names,
// folders and times do not matter; a byte that no reader needs does. Equal on every machine.
class ContentIdBuilder {
 public:
  // The collection has a file of this role, if only an empty one.
  void AddFile(FileRole role);
  // The next bytes of the file. REQUIRES: AddFile(role) was called.
  void AddBytes(FileRole role, std::string_view bytes);

  // A field is read otherwise than a first load of the files would read it, so the content answers
  // filters otherwise. To be called in the order of the fields.
  void AddKept(std::string_view field, std::string_view type, std::string_view separator);

  // Of the files and kept types so far: 32 lower-case hex digits.
  std::string Id() const;

 private:
  struct File {
    base::StableHash hash;
    std::uint64_t bytes;
  };
  std::array<std::optional<File>, kFileRoleCount> files_;  // by FileRole
  std::optional<base::StableHash> kept_;  // of the fields' types; none: none is kept
};

}  // namespace simile::data
