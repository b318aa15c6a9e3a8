#include "integration/other_tenant.h"

#include <vector>

#include <fmt/format.h>

#include "certificate/seeded_random.h"
#include "files/npy_file.h"

namespace simile::integration {
namespace {

constexpr std::size_t kItems = 5'000;
constexpr std::size_t kTenantDim = 6;
constexpr std::uint64_t kSeed = 39;
// Every one of them is acme's.
constexpr std::size_t kOwnEvery = kItems / OtherTenant::kOwnItems;
constexpr std::size_t kUsers = 1'200;

std::string OwnItem(std::size_t number) {
  return fmt::format(
      R"({{"id": "acme-{0}", "tenant": "acme", "title": "Acme story {0}", "tags": ["tag-{1}"], )"
      R"("year": {0}, "price": {0}.5, "is_new": {2}}})",
      number, number % 3, number % 2 == 0);
}

std::string OtherItem(std::size_t number) {
  return fmt::format(
      R"({{"id": "zebra-{0}", "tenant": "zebra", "title": "Zebra story {0}", )"
      R"("tags": ["tag-1", "zebra-tag-{1}"], "year": {2}, "price": {2}.5, "is_new": true, )"
      R"("zebra_field": "zebra", "zebra_tags": ["zebra"], "zebra_year": {2}, )"
      R"("zebra_time": "2026-01-01T00:00:00Z"}})",
      number, number % 7, 100'000 + number);
}

// Files of one folder. The vectors and users are not of unit length, and interactions name what
// there is not, so that the load has notes.
void Write(const ScratchFolder& root, const std::string& at, bool of_all,
           const std::string& last_line = "") {
  tests::SeededRandom random(kSeed);
  std::string metadata;
  std::vector<float> vectors;
  for (std::size_t row = 0; row < kItems; ++row) {
    const bool is_own = row % kOwnEvery == 0;
    std::vector<float> numbers(kTenantDim);
    for (float& number : numbers) number = 2 * random.Signed();
    if (!is_own && !of_all) continue;
    metadata += (is_own ? OwnItem(row / kOwnEvery) : OtherItem(row)) + "\n";
    vectors.insert(vectors.end(), numbers.begin(), numbers.end());
  }
  if (!last_line.empty()) {
    metadata += last_line + "\n";
    vectors.insert(vectors.end(), {1, 0, 0, 0, 0, 0});
  }
  root.Write(at + "/vectors.npy", NpyFile(vectors, kTenantDim));
  root.Write(at + "/metadata.jsonl", metadata);
  if (!of_all) return;
  std::string ids;
  std::string interactions;
  std::vector<float> users;
  for (std::size_t user = 0; user < kUsers; ++user) {
    const std::string id =
        fmt::format("{}-user-{}", user < OtherTenant::kOwnUsers ? "acme" : "zebra", user);
    ids += fmt::format("{}\"{}\"", ids.empty() ? "" : ", ", id);
    for (std::size_t i = 0; i < kTenantDim; ++i) users.push_back(random.Signed());
    interactions += fmt::format(
        "{{\"user_id\": \"{0}\", \"id\": \"acme-{1}\"}}\n"
        "{{\"user_id\": \"{0}\", \"id\": \"zebra-{2}\"}}\n",
        id, user % OtherTenant::kOwnItems, user + 1);
  }
  interactions += "{\"user_id\": \"zebra-nobody\", \"id\": \"zebra-nothing\"}\n";
  root.Write(at + "/user_ids.json", "[" + ids + "]");
  root.Write(at + "/preference_vectors.npy", NpyFile(users, kTenantDim));
  root.Write(at + "/interactions.jsonl", interactions);
  root.Write(at + "/zebra_notes.txt", "not read");
}

}  // namespace

OtherTenant::OtherTenant() {
  Write(root_, "shared", true);
  Write(root_, "acme", false);
  Write(root_, "zebra-books", false);
  // A load of these fails, each in its own way.
  Write(root_, "shared/twice", true, OtherItem(257));
  Write(root_, "shared/cut", true, R"({"id": "zebra-cut", "zebra_field": "zebra)");
}

}  // namespace simile::integration
