#include "backend/cpu/cpu_name.h"

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

}  // namespace
}  // namespace simile::backend::cpu
