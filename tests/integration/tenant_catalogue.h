#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "certificate/seeded_random.h"
#include "files/scratch_folder.h"

namespace simile::integration {

inline constexpr std::array kTenants = {"red", "green", "blue"};

// An item of one of the tenants.
struct TenantItem {
  std::string id;
  std::string tenant;
  std::vector<std::string> tags;  // tags of "red" begin with a capital letter
  std::string title;
  int year = 0;
  int stock = 0;
};

// A filter, and what it means, without the program's filter code.
struct TenantFilter {
  std::string text;  // empty lets every item pass
  std::function<bool(const TenantItem&)> passes;
};

// Up to seven conditions, also on the tenant.
TenantFilter RandomTenantFilter(tests::SeededRandom& random);

// Collections on disk. "shared" has the items of all tenants, mixed; many items equal items of
// other tenants. A collection named after each tenant has the tenant's items alone, in the same
// order. All collections have the same users.
class TenantCatalogue {
 public:
  static constexpr std::size_t kDim = 12;
  static constexpr std::size_t kUsers = 12;

  TenantCatalogue();

  std::filesystem::path FolderPath(const std::string& collection) const {
    return folder_.path() / collection;
  }
  const std::vector<TenantItem>& items() const { return items_; }  // rows of "shared"
  const TenantItem& Item(const std::string& id) const;
  // The ids of the tenant's items, or of all other tenants' items.
  std::vector<std::string> ListIds(const std::string& tenant, bool its_own = true) const;

 private:
  void DrawItems(tests::SeededRandom& random);
  void DrawUsers(tests::SeededRandom& random);
  // Writes a collection of the tenant's items, or of all items.
  void Write(const std::string& collection) const;

  const ScratchFolder folder_;
  std::vector<TenantItem> items_;
  std::vector<float> vectors_;  // [items, kDim]
  std::string user_ids_;        // the users' files
  std::string user_vectors_;
  std::string interactions_;
};

}  // namespace simile::integration
