#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "certificate/seeded_random.h"
#include "cli/inspect/mutations.h"
#include "cli/inspect/thing_folder.h"

namespace simile::cli {
namespace {

using tests::SeededRandom;

constexpr std::size_t kCutsOfEachFile = 6;
constexpr std::size_t kFlipsOfEachFile = 14;
constexpr std::size_t kPairs = 70;
constexpr std::size_t kTriples = 50;

constexpr std::array<const char*, 7> kFiles = {kVectorsNpy, kVectorsSafetensors, kPayload,
                                               kUserIds,    kUserVectors,        kInteractionLines,
                                               kSettings};

FolderContent FolderWith(const char* file) {
  return file == kVectorsSafetensors ? ThingFolderOfSafetensors() : ThingFolder();
}

// Changes the bytes of a file of the good folder.
Mutation OfBytes(const char* file, std::string name,
                 const std::function<void(std::string& bytes)>& change) {
  FolderContent changed = FolderWith(file);
  change(*changed.FindBytes(file));
  return {std::move(name),
          [changed = std::move(changed)](FolderContent& folder) { folder = changed; }, "",
          Fate::kEither};
}

void AddCuts(const char* file, SeededRandom& random, std::vector<Mutation>& mutations) {
  const std::size_t size = FolderWith(file).FindBytes(file)->size();
  for (std::size_t i = 0; i < kCutsOfEachFile; ++i) {
    const std::size_t kept = random.Below(size);
    mutations.push_back(OfBytes(file, fmt::format("{} {} cut to {} bytes", i, file, kept),
                                [kept](std::string& bytes) { bytes.resize(kept); }));
  }
}

// Half of the flips are in the first bytes, where the headers of vectors are.
void AddFlips(const char* file, SeededRandom& random, std::vector<Mutation>& mutations) {
  const std::size_t size = FolderWith(file).FindBytes(file)->size();
  for (std::size_t i = 0; i < kFlipsOfEachFile; ++i) {
    const std::size_t at = random.Below(i % 2 == 0 ? std::min<std::size_t>(size, 100) : size);
    const std::size_t bit = random.Below(8);
    mutations.push_back(OfBytes(
        file, fmt::format("{} {} bit {} of byte {} flipped", i, file, bit, at),
        [at, bit](std::string& bytes) { bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit)); }));
  }
}

// `count` different mutations of the list, one after the other.
Mutation Combine(const std::vector<Mutation>& list, std::size_t count, std::size_t number,
                 SeededRandom& random) {
  std::vector<Mutation> parts;
  std::string name = fmt::to_string(number);
  for (std::size_t i = 0; i < count; ++i) {
    parts.push_back(list[random.Below(list.size())]);
    name += fmt::format("{} {}", i == 0 ? ":" : " +", parts.back().name);
  }
  return {name,
          [parts = std::move(parts)](FolderContent& folder) {
            for (const Mutation& part : parts) part.apply(folder);
          },
          "", Fate::kEither};
}

}  // namespace

std::vector<Mutation> DrawnMutations(std::uint64_t seed) {
  SeededRandom random(seed);
  std::vector<Mutation> mutations;
  for (const char* const file : kFiles) {
    AddCuts(file, random, mutations);
    AddFlips(file, random, mutations);
  }
  return mutations;
}

std::vector<Mutation> CombinedMutations(std::uint64_t seed) {
  std::vector<Mutation> list = FolderMutations();
  for (auto* const more :
       {&VectorMutations, &LineMutations, &UserIdMutations, &SettingsMutations}) {
    for (Mutation& mutation : more()) list.push_back(std::move(mutation));
  }
  std::erase_if(list, [](const Mutation& mutation) { return mutation.fate != Fate::kRefused; });
  SeededRandom random(seed);
  std::vector<Mutation> combined;
  for (std::size_t i = 0; i < kPairs + kTriples; ++i) {
    combined.push_back(Combine(list, i < kPairs ? 2 : 3, i, random));
  }
  return combined;
}

}  // namespace simile::cli
