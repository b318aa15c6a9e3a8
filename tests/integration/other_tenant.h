#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "files/scratch_folder.h"

namespace simile::integration {

// A data root with a collection of two tenants. "shared" has 20 items of the tenant acme among
// thousands of the tenant zebra. All texts of zebra contain its name: ids, titles, users, field
// names and values, files, another collection. All numbers of zebra, and counts that include zebra,
// are above kOwnNumbersMax; no number of acme is. "acme" has acme's items alone.
class OtherTenant {
 public:
  static constexpr std::size_t kOwnItems = 20;
  static constexpr std::size_t kOwnUsers = 2;
  static constexpr double kOwnNumbersMax = 1'000;
  // A word in all texts of zebra, and in no other text.
  static constexpr const char* kMarker = "zebra";
  // A word of the same length that is in no text.
  static constexpr const char* kNowhere = "quagg";

  OtherTenant();

  const std::filesystem::path& root() const { return root_.path(); }

 private:
  const ScratchFolder root_;
};

}  // namespace simile::integration
