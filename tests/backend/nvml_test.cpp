#include "backend/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "files/scratch_folder.h"

namespace simile::backend {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

using std::chrono::milliseconds;

// The fake library with a state that the test writes, as fake_nvml.c describes it.
class NvmlTest : public ::testing::Test {
 protected:
  NvmlTest() { setenv("FAKE_NVML_FILE", (scratch_.path() / "nvml").c_str(), 1); }
  ~NvmlTest() override { unsetenv("FAKE_NVML_FILE"); }

  void Describe(const std::string& lines) const { scratch_.Write("nvml", lines); }
  static absl::StatusOr<std::unique_ptr<Nvml>> Open() { return Nvml::Open(kLibrary); }

  static inline const std::string kLibrary = std::string(SIMILE_FAKES_DIR) + "/libfake_nvml.so";
  const ScratchFolder scratch_;
};

TEST_F(NvmlTest, SaysThatTheLibraryIsMissing) {
  const absl::Status status = Nvml::Open("libnvidia-ml-that-is-not-here.so.1").status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_EQ(ParseNvmlCode(status), std::nullopt);
}

TEST_F(NvmlTest, SaysWhyALibraryCannotBeLoaded) {
  scratch_.Write("libnvidia-ml.so.1", "not a library");
  const absl::Status status = Nvml::Open((scratch_.path() / "libnvidia-ml.so.1").string()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot be loaded"));
}

TEST_F(NvmlTest, GivesTheCodeOfALibraryThatCannotStart) {
  Describe("init=18\nlibrary=570.133.20\n");
  const absl::Status status = Open().status();
  EXPECT_EQ(std::string(status.message()), "NVML error 18: Driver/library version mismatch");
  EXPECT_THAT(ParseNvmlCode(status), Optional(kNvmlVersionMismatch));
  EXPECT_EQ(NvmlLibraryVersion(kLibrary), "570.133.20");
}

TEST_F(NvmlTest, ReadsACard) {
  Describe(
      "name=NVIDIA T4\ndriver=535.161.07\nmemory_used=1024\nmemory_total=4096\nutilization=37\n"
      "temperature=71\npower=65500\nthrottle=0x40\necc=2\ncompute_mode=3\n");
  const auto nvml = Open();
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  EXPECT_EQ((*nvml)->DriverVersion(), "535.161.07");
  const auto reading = (*nvml)->Read(0);
  ASSERT_TRUE(reading.ok()) << reading.status();
  EXPECT_EQ(reading->name, "NVIDIA T4");
  EXPECT_EQ(reading->uuid, "GPU-00000000-0000-0000-0000-000000000000");
  EXPECT_EQ(reading->bus_id, "00000000:01:00.0");
  EXPECT_THAT(reading->memory_used_bytes, Optional(1'024U));
  EXPECT_THAT(reading->memory_total_bytes, Optional(4'096U));
  EXPECT_THAT(reading->utilization_ratio, Optional(0.37));
  EXPECT_THAT(reading->temperature_celsius, Optional(71U));
  EXPECT_THAT(reading->power_watts, Optional(65.5));
  EXPECT_THAT(reading->throttle_reasons, Optional(0x40U));
  EXPECT_THAT(reading->ecc_uncorrected_errors, Optional(2U));
  EXPECT_THAT(reading->compute_mode, Optional(3U));
}

TEST_F(NvmlTest, LeavesOutWhatTheCardCannotSay) {
  Describe("ecc=\nutilization=\npower=\n");
  const auto nvml = Open();
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  const auto reading = (*nvml)->Read(0);
  ASSERT_TRUE(reading.ok()) << reading.status();
  EXPECT_EQ(reading->ecc_uncorrected_errors, std::nullopt);
  EXPECT_EQ(reading->utilization_ratio, std::nullopt);
  EXPECT_EQ(reading->power_watts, std::nullopt);
  EXPECT_NE(reading->temperature_celsius, std::nullopt);
}

TEST_F(NvmlTest, ReadsAgainWhatChanged) {
  Describe("temperature=40\n");
  const auto nvml = Open();
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  EXPECT_THAT((*nvml)->Read(0)->temperature_celsius, Optional(40U));
  Describe("temperature=91\n");
  EXPECT_THAT((*nvml)->Read(0)->temperature_celsius, Optional(91U));
}

TEST_F(NvmlTest, SaysThatACardIsLost) {
  const auto nvml = Open();
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  for (const char* state : {"handle=15\n", "read=15\n"}) {
    Describe(state);
    EXPECT_THAT(ParseNvmlCode((*nvml)->Read(0).status()), Optional(kNvmlGpuIsLost)) << state;
  }
}

TEST_F(NvmlTest, FindsACardByItsPlaceOnTheBus) {
  Describe("devices=3\n");
  const auto nvml = Open();
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  EXPECT_EQ((*nvml)->CountDevices().value(), 3U);
  EXPECT_EQ((*nvml)->IndexAt("0000:03:00.0").value(), 2U);
  EXPECT_FALSE((*nvml)->IndexAt("0000:09:00.0").ok());
}

TEST_F(NvmlTest, ListsTheProcessesOnACard) {
  Describe("processes=4242,4711\n");
  const auto nvml = Open();
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  EXPECT_THAT((*nvml)->ProcessesOn(0).value(), ElementsAre(4'242U, 4'711U));
  Describe("");
  EXPECT_THAT((*nvml)->ProcessesOn(0).value(), IsEmpty());
}

TEST_F(NvmlTest, ReportsEachXidOnce) {
  Describe("xids=13\n");
  const auto nvml = Open();
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  const auto events = (*nvml)->WatchXids(0);
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_EQ((*events)->Next(milliseconds(0)).value(), std::nullopt);
  Describe("xids=13,79,48\n");
  EXPECT_THAT((*events)->Next(milliseconds(0)).value(), Optional(79U));
  EXPECT_THAT((*events)->Next(milliseconds(0)).value(), Optional(48U));
  EXPECT_EQ((*events)->Next(milliseconds(0)).value(), std::nullopt);
}

TEST_F(NvmlTest, SaysThatACardReportsNoXids) {
  Describe("events=3\n");
  const auto nvml = Open();
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  EXPECT_EQ(std::string((*nvml)->WatchXids(0).status().message()), "NVML error 3: Not Supported");
}

}  // namespace
}  // namespace simile::backend
