#include "integration/tenant_catalogue.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "files/npy_file.h"

namespace simile::integration {
namespace {

using tests::SeededRandom;

constexpr std::uint64_t kSeed = 7'100'000;
constexpr std::size_t kItems = 600;
constexpr std::size_t kTags = 14;
constexpr std::array kTitles = {"Night River", "The Red Harbour", "Harbour Lights", "A Long Night",
                                "River"};

bool Folded(const std::string& a, const std::string& b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

TenantFilter RandomCondition(SeededRandom& random) {
  const int year = static_cast<int>(random.Between(1970, 2009));
  const int stock = static_cast<int>(random.Below(100));
  const std::string tenant = kTenants[random.Below(kTenants.size())];
  const std::string tag = fmt::format("tag-{:02}", random.Below(kTags));
  const std::string id = fmt::format("item-{}", random.Below(kItems));
  switch (random.Below(7)) {
    case 0:
      return {fmt::format("year >= {}", year), [=](const auto& item) { return item.year >= year; }};
    case 1:
      return {fmt::format("stock < {}", stock),
              [=](const auto& item) { return item.stock < stock; }};
    case 2:
      return {fmt::format("tags:\"{}\"", tag), [=](const auto& item) {
                return std::ranges::any_of(
                    item.tags, [&](const std::string& each) { return Folded(each, tag); });
              }};
    case 3:
      return {fmt::format("tenant = \"{}\"", tenant),
              [=](const auto& item) { return item.tenant == tenant; }};
    case 4:
      return {fmt::format("tenant != \"{}\"", tenant),
              [=](const auto& item) { return item.tenant != tenant; }};
    case 5:
      return {fmt::format("id != \"{}\"", id), [=](const auto& item) { return item.id != id; }};
    default:
      return {fmt::format("year IN [{}, {}, {}]", year, year + 1, year + 2),
              [=](const auto& item) { return item.year >= year && item.year <= year + 2; }};
  }
}

TenantFilter RandomExpression(SeededRandom& random, int depth) {
  if (depth == 0 || random.OneIn(3)) return RandomCondition(random);
  const TenantFilter a = RandomExpression(random, depth - 1);
  if (random.OneIn(4)) {
    return {fmt::format("NOT ({})", a.text), [=](const auto& item) { return !a.passes(item); }};
  }
  const TenantFilter b = RandomExpression(random, depth - 1);
  if (random.OneIn(2)) {
    return {fmt::format("(({}) AND ({}))", a.text, b.text),
            [=](const auto& item) { return a.passes(item) && b.passes(item); }};
  }
  return {fmt::format("(({}) OR ({}))", a.text, b.text),
          [=](const auto& item) { return a.passes(item) || b.passes(item); }};
}

std::vector<float> RandomRow(SeededRandom& random) {
  std::vector<float> row(TenantCatalogue::kDim);
  for (float& value : row) value = random.Signed();
  row[0] += 0x1p-10F;  // never all zeros
  return row;
}

}  // namespace

TenantFilter RandomTenantFilter(SeededRandom& random) { return RandomExpression(random, 3); }

TenantCatalogue::TenantCatalogue() {
  SeededRandom random(kSeed);
  DrawItems(random);
  DrawUsers(random);
  Write("shared");
  for (const char* const tenant : kTenants) Write(tenant);
}

const TenantItem& TenantCatalogue::Item(const std::string& id) const {
  return items_.at(std::stoul(id.substr(id.find('-') + 1)));
}

std::vector<std::string> TenantCatalogue::ListIds(const std::string& tenant, bool its_own) const {
  std::vector<std::string> ids;
  for (const TenantItem& item : items_) {
    if ((item.tenant == tenant) == its_own) ids.push_back(item.id);
  }
  return ids;
}

void TenantCatalogue::DrawItems(SeededRandom& random) {
  for (std::size_t number = 0; number < kItems; ++number) {
    TenantItem item;
    item.id = fmt::format("item-{}", number);
    item.tenant = kTenants[random.Below(kTenants.size())];
    for (std::size_t left = random.Below(4); left > 0; --left) {
      item.tags.push_back(
          fmt::format("{}ag-{:02}", item.tenant == "red" ? "T" : "t", random.Below(kTags)));
    }
    item.title = kTitles[random.Below(kTitles.size())];
    item.year = static_cast<int>(random.Between(1970, 2009));
    item.stock = static_cast<int>(random.Below(100));
    items_.push_back(std::move(item));
    std::vector<float> row = RandomRow(random);
    if (number > 0 && random.OneIn(3)) {
      const auto other = static_cast<std::ptrdiff_t>(random.Below(number) * kDim);
      row.assign(vectors_.begin() + other, vectors_.begin() + other + kDim);
    }
    vectors_.insert(vectors_.end(), row.begin(), row.end());
  }
}

void TenantCatalogue::DrawUsers(SeededRandom& random) {
  std::vector<std::string> ids;
  std::vector<float> vectors;
  for (std::size_t user = 0; user < kUsers; ++user) {
    ids.push_back(fmt::format("\"user-{}\"", user));
    const std::vector<float> row = RandomRow(random);
    vectors.insert(vectors.end(), row.begin(), row.end());
    for (std::size_t left = random.Below(60); left > 0; --left) {
      interactions_ += fmt::format("{{\"user_id\": \"user-{}\", \"id\": \"item-{}\"}}\n", user,
                                   random.Below(kItems));
    }
  }
  user_ids_ = fmt::format("[{}]\n", fmt::join(ids, ", "));
  user_vectors_ = NpyFile(vectors, kDim);
}

void TenantCatalogue::Write(const std::string& collection) const {
  std::string metadata;
  std::vector<float> vectors;
  for (std::size_t row = 0; row < items_.size(); ++row) {
    const TenantItem& item = items_[row];
    if (collection != "shared" && item.tenant != collection) continue;
    std::vector<std::string> tags;
    for (const std::string& tag : item.tags) tags.push_back(fmt::format("\"{}\"", tag));
    metadata += fmt::format(
        R"({{"id": "{}", "tenant": "{}", "tags": [{}], "title": "{}", "year": {}, "stock": {}}})",
        item.id, item.tenant, fmt::join(tags, ", "), item.title, item.year, item.stock);
    metadata += '\n';
    const auto begin = vectors_.begin() + static_cast<std::ptrdiff_t>(row * kDim);
    vectors.insert(vectors.end(), begin, begin + kDim);
  }
  const std::string at = collection + "/";
  folder_.Write(at + "vectors.npy", NpyFile(vectors, kDim));
  folder_.Write(at + "metadata.jsonl", metadata);
  folder_.Write(at + "user_ids.json", user_ids_);
  folder_.Write(at + "preference_vectors.npy", user_vectors_);
  folder_.Write(at + "interactions.jsonl", interactions_);
}

}  // namespace simile::integration
