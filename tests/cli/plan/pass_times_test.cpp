#include "cli/plan/pass_times.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "certificate/seeded_random.h"
#include "cli/plan/known_cards.h"

namespace simile::cli {
namespace {

PlannedCollection Rows(std::uint64_t rows, std::uint32_t dim) {
  PlannedCollection collection;
  collection.rows = rows;
  collection.dim = dim;
  return collection;
}

// A batch over a collection. The card holds the rows in each form that its capability has kernels
// for.
struct Case {
  Case(const std::string& card, std::uint64_t rows, std::uint32_t dim, std::uint32_t batch,
       std::uint32_t k)
      : facts(FindCardFacts(card).value()),
        collection(Rows(rows, dim)),
        resident(backend::PlanResident(
            {static_cast<unsigned>(rows), static_cast<unsigned>(PaddedDim(dim))}, true,
            facts.capability >= 80)),
        of{collection, batch, k, workspace, facts.speed, resident, facts.name} {}
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  double Floor() const {
    return FloorOnDevice(collection, of.batch, of.k, workspace, facts.speed, resident).seconds;
  }

  CardFacts facts;
  PlannedCollection collection;
  backend::WorkspaceSize workspace;
  backend::ResidentSize resident;
  DeviceBatch of;
};

std::vector<MeasuredPass> FindPasses(std::string_view card) {
  std::vector<MeasuredPass> passes;
  std::ranges::copy_if(MeasuredPasses(), std::back_inserter(passes),
                       [&](const MeasuredPass& pass) { return pass.card == card; });
  return passes;
}

// Every pass of one card that its server plans, predicted from the other card's figures alone.
//   wanted  which of them
template <class Wanted>
void ExpectWithinOneAndAHalf(const std::string& card, const std::string& other, Wanted wanted) {
  const std::vector<MeasuredPass> known = FindPasses(other);
  double worst = 1;
  int compared = 0;
  for (const MeasuredPass& pass : FindPasses(card)) {
    if (pass.kind != PassKind::kInt8Scan && pass.kind != PassKind::kGemm) continue;
    if (!wanted(pass)) continue;
    const Case predicted(card, pass.rows, pass.dim, pass.batch, pass.k);
    const auto time = PassTimeOnDevice(predicted.of, known);
    ASSERT_TRUE(time.has_value());
    EXPECT_EQ(time->basis, Basis::kScaled);
    EXPECT_EQ(time->card, other);
    const double ratio = time->seconds * 1e6 / pass.device_us;
    EXPECT_LT(std::max(ratio, 1 / ratio), 1.5)
        << card << " from " << other << ": " << pass.rows << " rows, batch " << pass.batch << ", k "
        << pass.k << ": " << time->seconds * 1e6 << " us for " << pass.device_us;
    worst = std::max({worst, ratio, 1 / ratio});
    ++compared;
  }
  EXPECT_GE(compared, 8);
  fmt::print("{} from {}: {} passes, the worst {:.2f} times\n", card, other, compared, worst);
}

TEST(PassTimesTest, TellsTheH200FromTheH100) {
  ExpectWithinOneAndAHalf("H200", "H100 80GB HBM3", [](const MeasuredPass&) { return true; });
}

// Of the H200 each collection was measured with one k.
TEST(PassTimesTest, TellsTheH100FromTheH200) {
  ExpectWithinOneAndAHalf("H100 80GB HBM3", "H200", [](const MeasuredPass& pass) {
    return pass.k == (pass.dim == 384 ? 10U : 100U);
  });
}

TEST(PassTimesTest, ScalesByALineOverFloors) {
  // By hand: the H100 took 30.33 us for a floor of 7.305 and 310 for 232.4 (k 10, one query).
  const double few_floor = (62'423.0 * (384 + 8) + 2 * 384 * 4) / 3.35e12;
  const double many_floor = (1e6 * (768 + 8) + 2 * 768 * 4) / 3.35e12;
  const Case here("A5000", 200'000, 256, 1, 10);
  const double floor = (200'000.0 * (256 + 8) + 2 * 256 * 4) / 768e9;
  EXPECT_NEAR(here.Floor(), floor, 1e-12);
  const double slope = (310e-6 - 30.33e-6) / (many_floor - few_floor);
  const double by_hand = 30.33e-6 + slope * (floor - few_floor);
  const auto time = PassTimeOnDevice(here.of, MeasuredPasses());
  ASSERT_TRUE(time.has_value());
  EXPECT_NEAR(time->seconds, by_hand, 0.01 * by_hand);
  // And the host's share: 9.985 us of one query at 384 dimensions.
  EXPECT_NEAR(EngineTimeOnDevice(here.of).seconds, by_hand + 9.985e-6, 0.01 * by_hand);
  EXPECT_EQ(EngineTimeOnDevice(here.of).basis, Basis::kScaled);
}

TEST(PassTimesTest, SaysWhatWasMeasuredAsItIs) {
  for (const MeasuredPass& pass : FindPasses("H100 80GB HBM3")) {
    const Case here("H100", pass.rows, pass.dim, pass.batch, pass.k);
    const EngineTime time = EngineTimeOnDevice(here.of);
    EXPECT_EQ(time.basis, Basis::kMeasured) << pass.batch;
    EXPECT_DOUBLE_EQ(time.seconds, pass.host_us * 1e-6);
  }
  const Case single("H100", 62'423, 384, 1, 10), at_once("H100", 62'423, 384, kCallsAtOnce, 10);
  const Case thousand("H100", 62'423, 384, 1'000, 10);
  const ServedTime one = ServedCalls(&single.of, 1, EngineTimeOnDevice(single.of));
  EXPECT_EQ(one.basis, Basis::kMeasured);
  EXPECT_EQ(one.queries_per_s, 7'296);
  EXPECT_EQ(ServedAtOnce(&single.of, EngineTimeOnDevice(at_once.of)).queries_per_s, 29'580);
  EXPECT_EQ(ServedCalls(&thousand.of, 1'000, EngineTimeOnDevice(thousand.of)).queries_per_s,
            88'842);
  // Of other rows the same server takes as long, about.
  const Case other("H100", 62'424, 384, 1, 10);
  const ServedTime scaled = ServedCalls(&other.of, 1, EngineTimeOnDevice(other.of));
  EXPECT_EQ(scaled.basis, Basis::kScaled);
  EXPECT_NEAR(scaled.queries_per_s, 7'296, 0.01 * 7'296);
}

TEST(PassTimesTest, SaysThatNothingOfAKindWasMeasured) {
  const Case one("P4", 62'423, 384, 1, 10), many("P4", 62'423, 384, 1'000, 10);
  for (const Case* here : {&one, &many}) {
    const EngineTime time = EngineTimeOnDevice(here->of);
    EXPECT_EQ(time.basis, Basis::kFloor);
    EXPECT_EQ(time.card, "");
    EXPECT_EQ(time.seconds, here->Floor());
    EXPECT_EQ(ServedCalls(&here->of, here->of.batch, time).basis, Basis::kFloor);
  }
  // A V100 scans without tensor cores and multiplies large batches with them.
  const Case scan("V100", 62'423, 384, 1, 10), gemm("V100", 62'423, 384, 1'000, 10);
  EXPECT_EQ(EngineTimeOnDevice(scan.of).basis, Basis::kFloor);
  EXPECT_EQ(EngineTimeOnDevice(gemm.of).basis, Basis::kScaled);
  const Case canonical("H100", 1'000, 384, 1, 10);
  EXPECT_EQ(EngineTimeOnDevice(canonical.of).basis, Basis::kFloor);
}

TEST(PassTimesTest, TakesNoLessThanItsFloorAndGrowsWithRows) {
  tests::SeededRandom random(11);
  const auto between = [&](std::size_t least, std::size_t most) {
    return static_cast<std::uint32_t>(random.Between(least, most));
  };
  for (const CardFacts& card : KnownCards()) {
    if (card.capability < 61) continue;
    for (int i = 0; i < 20; ++i) {
      const std::uint32_t dim = between(1, 2'000), batch = between(1, 3'000);
      const std::uint32_t k = between(1, 2'000), rows = between(5'000, 1'000'000);
      const Case here(card.name, rows, dim, batch, k), larger(card.name, 2 * rows, dim, batch, k);
      const double time = EngineTimeOnDevice(here.of).seconds;
      EXPECT_GE(time, here.Floor()) << card.name << ' ' << rows << ' ' << dim << ' ' << batch;
      EXPECT_GT(EngineTimeOnDevice(larger.of).seconds, time) << card.name;
    }
  }
}

TEST(PassTimesTest, CountsTheServersShareOnTheHost) {
  const EngineTime engine{64e-6, Basis::kFloor, ""};
  // A million a second by the engine alone: the server's 33.8 us a call are added on the host.
  EXPECT_NEAR(ServedAtOnce(nullptr, engine).queries_per_s, 1 / (1e-6 + 1 / 29'580.0), 1);
  EXPECT_NEAR(ServedCalls(nullptr, 1, engine).seconds, 64e-6 + 97e-6, 1e-9);
  EXPECT_NEAR(ServedCalls(nullptr, 2'000, engine).seconds, 64e-6 + 2 * 10'481e-6, 1e-9);
}

}  // namespace
}  // namespace simile::cli
