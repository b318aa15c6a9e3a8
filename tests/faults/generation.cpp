#include "faults/generation.h"

#include <algorithm>
#include <fstream>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "certificate/canonical_score.h"
#include "certificate/seeded_random.h"
#include "files/npy_file.h"
#include "simile/rank_key.h"

namespace simile::faults {
namespace {

std::vector<float> Numbers(tests::SeededRandom& random, std::size_t count) {
  std::vector<float> numbers(count);
  for (float& number : numbers) number = random.Signed();
  return numbers;
}

void WriteFile(const std::filesystem::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

Generation::Generation(std::uint64_t seed, const Shape& shape) : shape_(shape), seed_(seed) {
  tests::SeededRandom random(seed);
  vectors_ = Numbers(random, shape.rows * shape.dim);
}

void Generation::Write(const std::filesystem::path& folder,
                       const std::vector<float>& vectors) const {
  std::filesystem::create_directories(folder);
  tests::SeededRandom random(seed_ ^ 0x75736572);
  std::string payload;
  std::string interactions;
  std::string users;
  for (std::size_t row = 0; row < shape_.rows; ++row) {
    payload += fmt::format(
        "{{\"id\":\"item-{}\",\"title\":\"A tale of river {} and seed {}\",\"year\":{},"
        "\"genres\":[\"Genre {}\",\"Drama\"]}}\n",
        row, row, seed_, 1950 + row % 70, row % 7);
  }
  for (std::size_t user = 0; user < kUsers; ++user) {
    users += fmt::format("{}\"user-{}\"", user == 0 ? "" : ",", user);
    interactions +=
        fmt::format("{{\"user_id\":\"user-{}\",\"media_id\":\"item-{}\"}}\n", user, 3 * user);
  }
  WriteFile(folder / "collection.json", fmt::format("{{\"metric\":\"{}\"}}", shape_.metric));
  WriteFile(folder / "content_vectors.npy",
            NpyFile(vectors.empty() ? vectors_ : vectors, shape_.dim));
  WriteFile(folder / "preference_vectors.npy",
            NpyFile(Numbers(random, kUsers * shape_.dim), shape_.dim));
  WriteFile(folder / "metadata.jsonl", payload);
  WriteFile(folder / "interactions.jsonl", interactions);
  WriteFile(folder / "user_ids.json", fmt::format("[{}]", users));
}

std::vector<Generation::Expected> Generation::Neighbours(std::size_t row) const {
  const auto vector = [this](std::size_t of) {
    return std::span(vectors_).subspan(of * shape_.dim, shape_.dim);
  };
  std::vector<Expected> found;
  for (std::size_t other = 0; other < shape_.rows; ++other) {
    if (other == row) continue;
    found.push_back({other, certificate::CanonicalScoreReference(vector(row), vector(other))});
  }
  std::ranges::sort(found, [](const Expected& a, const Expected& b) {
    return RankKey(a.score, static_cast<Row>(a.row)) > RankKey(b.score, static_cast<Row>(b.row));
  });
  found.resize(std::min(found.size(), kHits));
  return found;
}

v1::SearchRequest Generation::Search(std::size_t row, const std::string& collection) {
  v1::SearchRequest request;
  request.set_collection(collection);
  request.add_queries()->set_id(fmt::format("item-{}", row));
  request.mutable_options()->set_k(static_cast<std::uint32_t>(kHits));
  return request;
}

testing::AssertionResult Generation::Equal(const google::protobuf::RepeatedPtrField<v1::Hit>& hits,
                                           const std::vector<Expected>& expected) {
  if (hits.size() != static_cast<int>(expected.size())) {
    return testing::AssertionFailure() << hits.size() << " hits for " << expected.size();
  }
  for (std::size_t rank = 0; rank < expected.size(); ++rank) {
    const v1::Hit& hit = hits[static_cast<int>(rank)];
    const std::string id = fmt::format("item-{}", expected[rank].row);
    if (hit.id() == id && hit.score() == expected[rank].score) continue;
    return testing::AssertionFailure()
           << fmt::format("rank {}: {} ({:a}) for {} ({:a})", rank + 1, hit.id(), hit.score(), id,
                          expected[rank].score);
  }
  return testing::AssertionSuccess();
}

}  // namespace simile::faults
