#include "backend/cpu/processor.h"

#include <string>

#include <gtest/gtest.h>

#include "files/scratch_folder.h"

namespace simile::backend::cpu {
namespace {

TEST(CpuNameTest, NamesTheProcessor) {
  const ScratchFolder scratch;
  scratch.Write("cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9B14\nflags\t: fpu\n");
  EXPECT_EQ(CpuName((scratch.path() / "cpuinfo").string()), "AMD EPYC 9B14");
}

// Of processors of ARM the system tells numbers alone.
std::string NameOfArm(const std::string& implementer, const std::string& part) {
  const ScratchFolder scratch;
  scratch.Write("cpuinfo",
                "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: " + implementer +
                    "\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: " + part +
                    "\nCPU revision\t: 1\n\n");
  return CpuName((scratch.path() / "cpuinfo").string());
}

TEST(CpuNameTest, NamesTheCoreOfAnArmProcessor) {
  EXPECT_EQ(NameOfArm("0x41", "0xd0c"), "Neoverse N1");
  EXPECT_EQ(NameOfArm("0xc0", "0xac3"), "Ampere-1");
}

TEST(CpuNameTest, GivesTheNumbersOfAnArmProcessorItDoesNotKnow) {
  EXPECT_EQ(NameOfArm("0x41", "0xfff"), "ARM processor 0x41:0xfff");
  EXPECT_EQ(NameOfArm("0x51", "0xd0c"), "ARM processor 0x51:0xd0c");
}

TEST(CpuNameTest, NamesTheArchitectureWhereTheProcessorHasNoName) {
  const ScratchFolder scratch;
  EXPECT_FALSE(CpuName((scratch.path() / "absent").string()).empty());
}

class CacheSizeTest : public ::testing::Test {
 protected:
  void AddCache(const std::string& index, const std::string& level, const std::string& type,
                const std::string& size) const {
    scratch_.Write(index + "/level", level + "\n");
    scratch_.Write(index + "/type", type + "\n");
    scratch_.Write(index + "/size", size + "\n");
  }
  std::optional<std::size_t> Read() const { return SecondLevelBytes(scratch_.path()); }

  const ScratchFolder scratch_;
};

TEST_F(CacheSizeTest, ReadsTheSecondLevelOfSeveral) {
  AddCache("index0", "1", "Data", "48K");
  AddCache("index1", "1", "Instruction", "32K");
  AddCache("index2", "2", "Unified", "2048K");
  AddCache("index3", "3", "Unified", "260M");
  EXPECT_EQ(Read(), 2'048U * 1'024U);
}

TEST_F(CacheSizeTest, IgnoresInstructionCaches) {
  AddCache("index0", "2", "Instruction", "512K");
  AddCache("index1", "2", "Data", "1M");
  EXPECT_EQ(Read(), 1U << 20);
}

TEST_F(CacheSizeTest, FindsNothingWhereTheSystemListsNoSecondLevel) {
  EXPECT_FALSE(Read().has_value());
  AddCache("index0", "1", "Data", "48K");
  EXPECT_FALSE(Read().has_value());
  EXPECT_FALSE(SecondLevelBytes(scratch_.path() / "none").has_value());
}

TEST_F(CacheSizeTest, FindsNothingInAnInvalidSize) {
  for (const char* size : {"", "K", "0K", "2048KB", "-1", "99999999999999999999", "9999999M"}) {
    AddCache("index0", "2", "Unified", size);
    EXPECT_FALSE(Read().has_value()) << size;
  }
}

}  // namespace
}  // namespace simile::backend::cpu
