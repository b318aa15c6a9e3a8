#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "files/scratch_folder.h"

namespace simile::integration {

// A data root with a collection of two tenants. "shared" has 20 items of the tenant acme among
// thousands of zebra. Everything of zebra has its name in it: ids, titles, users, field names and
// values, files, another collection. Every number of zebra's, and every count that includes zebra,
// is above kOwnNumbersMax; every number of acme's is not. "acme" has acme's items alone.
class OtherTenant {
 public:
  static constexpr std::size_t kOwnItems = 20;
  static constexpr std::size_t kOwnUsers = 2;
  static constexpr double kOwnNumbersMax = 1'000;
  // In all that zebra has, and in nothing else.
  static constexpr const char* kMarker = "zebra";
  // As long, and in nothing at all.
  static constexpr const char* kNowhere = "quagg";

  OtherTenant();

  const std::filesystem::path& root() const { return root_.path(); }

 private:
  const ScratchFolder root_;
};

}  // namespace simile::integration
