#include "cli/plan/found_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

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

}  // namespace
}  // namespace simile::cli
