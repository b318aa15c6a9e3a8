#include "backend/cpu/row_scores.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/cpu/scan_backend.h"
#include "backend/segments.h"
#include "backend/small_blocks.h"

namespace simile::backend::cpu {
namespace {

using tests::MakeSegment;
using tests::PaddedRows;
using tests::SeededRandom;
using tests::UnitRows;

// Every backend forms the reference's bits for any list of rows.
void ExpectReferenceScores(Backend& backend, const std::string& what) {
  constexpr std::uint64_t kSeed = 81;
  SeededRandom random(kSeed);
  for (int round = 0; round < 200; ++round) {
    const std::size_t row_count = random.Between(1, random.OneIn(10) ? 4'000 : 300);
    const std::size_t dim = random.Between(1, 100);
    const Row first_row = random.OneIn(2) ? static_cast<Row>(random.Below(5'000)) : 0;
    const auto rows = UnitRows(row_count, dim, random);
    const auto queries = UnitRows(random.Between(1, 9), dim, random);
    const auto index = backend.MakeResident(MakeSegment(rows, first_row));
    ASSERT_TRUE(index.ok());
    // Runs of consecutive rows of all lengths, and gaps.
    const std::size_t share = random.Between(1, 4);
    std::vector<Row> wanted;
    for (std::size_t row = 0; row < row_count; ++row) {
      if (random.OneIn(share)) wanted.push_back(first_row + static_cast<Row>(row));
    }
    std::vector<float> scores(queries->row_count() * wanted.size(), -2);
    ASSERT_TRUE((*index)->Score(queries->view(), wanted, scores, nullptr).ok());
    for (std::size_t query = 0; query < queries->row_count(); ++query) {
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const float expected = certificate::CanonicalScoreReference(
            queries->view()[query], rows->view()[wanted[i] - first_row]);
        ASSERT_EQ(scores[query * wanted.size() + i], expected)
            << what << ", round " << round << ", seed " << kSeed;
      }
    }
  }
}

TEST(RowScoresTest, AreTheReferencesOnEveryBackend) {
  for (const certificate::CanonicalKernel* kernel : certificate::SupportedCanonicalKernels()) {
    ExpectReferenceScores(*MakeScanBackend(*kernel, 3), std::string(kernel->isa));
  }
  ExpectReferenceScores(*MakeInt8Backend(tests::SmallBlocks(2)), "int8");
}

}  // namespace
}  // namespace simile::backend::cpu
