#include "cli/plan/this_machine.h"

#include <chrono>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/scratch_folder.h"

namespace simile::cli {
namespace {

using testing::HasSubstr;

std::string FakeFile(const std::string& name) { return std::string(SIMILE_FAKES_DIR) + "/" + name; }

const std::string kManagement = FakeFile("libfake_nvml.so");

backend::GpuSearch SearchFor(const std::string& plugin) {
  return {FakeFile("libfake_cuda_driver.so"), {FakeFile(plugin)}};
}

TEST(FindCardTest, TakesTheNumberAndTheMemoryOfThePlugin) {
  const auto found = FindCard(1, SearchFor("libfake_two_devices.so"), kManagement);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->name, "NVIDIA T4");
  EXPECT_EQ(found->origin, "gpu.device 1");
  EXPECT_EQ(found->memory_bytes, std::uint64_t{16} << 30);
}

TEST(FindCardTest, SaysWhichCardIsThereInstead) {
  const auto found = FindCard(2, SearchFor("libfake_two_devices.so"), kManagement);
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("1, NVIDIA T4 (16 GiB)"));
}

TEST(FindCardTest, WithoutAPluginTakesTheOrderOfTheBusAndSaysSo) {
  const ScratchFolder scratch;
  scratch.Write("nvml", "devices=2\nname=NVIDIA L4\nmemory_total=24000000000\n");
  setenv("FAKE_NVML_FILE", (scratch.path() / "nvml").c_str(), 1);
  const auto found = FindCard(1, SearchFor("absent.so"), kManagement);
  unsetenv("FAKE_NVML_FILE");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->name, "NVIDIA L4");
  EXPECT_EQ(found->origin,
            "card 1 in the order of the bus, at 00000000:02:00.0; there is no GPU plug-in");
  EXPECT_EQ(found->memory_bytes, 24'000'000'000U);
}

TEST(FindCardTest, SaysThatThereIsNoDriver) {
  const auto found = FindCard(0, {"libcuda-that-is-not-here.so.1", {}}, kManagement);
  EXPECT_EQ(found.status().message(),
            "no NVIDIA driver on this machine (libcuda-that-is-not-here.so.1 not found)");
}

// Moves on by the same step whenever it is asked, so that only a few runs are made.
class SteppingClock final : public Clock {
 public:
  TimePoint Now() const override { return now_ += std::chrono::milliseconds(50); }
  std::chrono::system_clock::time_point WallNow() const override { return {}; }

 private:
  mutable TimePoint now_{};
};

TEST(HostSpeedTest, MeasuresSizesFromTheCachesToTheMemory) {
  backend::cpu::Int8Options options = backend::cpu::OptionsFor("portable");
  options.threads = 2;
  const SteppingClock clock;
  const auto speed = MeasureHostSpeed(options, 64, clock);
  ASSERT_TRUE(speed.ok()) << speed.status();
  ASSERT_FALSE(speed->cached.empty());
  EXPECT_EQ(speed->cached.front().bytes, 32U << 10);
  EXPECT_EQ(speed->cached.back().bytes, 256U << 20);
  EXPECT_EQ(speed->cached.back().bytes_per_s, speed->bytes_per_s);
  for (std::size_t i = 1; i < speed->cached.size(); ++i) {
    EXPECT_LE(speed->cached[i].bytes_per_s, speed->cached[i - 1].bytes_per_s)
        << "less cannot be slower: floors stay floors";
  }
  EXPECT_GT(speed->products_per_s, 0);
}

}  // namespace
}  // namespace simile::cli
