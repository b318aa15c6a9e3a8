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

TEST(CpuNameTest, NamesTheArchitectureWhereTheProcessorHasNoName) {
  const ScratchFolder scratch;
  EXPECT_FALSE(CpuName((scratch.path() / "absent").string()).empty());
}

}  // namespace
}  // namespace simile::backend::cpu
