#include "base/threads.h"

#include <sched.h>
#include <sys/resource.h>

#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "files/scratch_folder.h"

namespace simile::base {
namespace {

// A process in a cgroup tree of test files.
class CpuCountTest : public ::testing::Test {
 protected:
  CpuCountTest() {
    files_.own_cgroup = (scratch_.path() / "own_cgroup").string();
    files_.cgroup_root = (scratch_.path() / "cgroup").string();
  }

  void Write(const std::string& path, const std::string& text) { scratch_.Write(path, text); }

  const ScratchFolder scratch_;
  CpuLimitFiles files_;
};

unsigned AffinityCount() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  return static_cast<unsigned>(CPU_COUNT(&set));
}

TEST_F(CpuCountTest, IsTheAffinityWithoutAQuota) {
  EXPECT_EQ(UsableCpuCount(files_), AffinityCount());
  Write("own_cgroup", "0::/service\n");
  Write("cgroup/service/cpu.max", "max 100000\n");
  EXPECT_EQ(UsableCpuCount(files_), AffinityCount());
}

TEST_F(CpuCountTest, ReadsAVersion2Quota) {
  Write("own_cgroup", "0::/service\n");
  Write("cgroup/service/cpu.max", "100000 100000\n");
  EXPECT_EQ(UsableCpuCount(files_), 1U);
}

TEST_F(CpuCountTest, ObeysTheSmallestQuotaUpToTheRoot) {
  Write("own_cgroup", "0::/pod/service\n");
  Write("cgroup/pod/cpu.max", "50000 100000\n");
  Write("cgroup/pod/service/cpu.max", "6400000 100000\n");
  EXPECT_EQ(UsableCpuCount(files_), 1U);
}

TEST_F(CpuCountTest, RoundsAPartOfAProcessorUp) {
  Write("own_cgroup", "0::/service\n");
  Write("cgroup/service/cpu.max", "110000 100000\n");
  EXPECT_EQ(UsableCpuCount(files_), std::min(2U, AffinityCount()));
}

TEST_F(CpuCountTest, FindsTheQuotaAtTheRootOfAContainer) {
  // The container sees its own group mounted as the root, under a path that is the host's.
  Write("own_cgroup", "0::/kubepods/pod1/container1\n");
  Write("cgroup/cpu.max", "80000 100000\n");
  EXPECT_EQ(UsableCpuCount(files_), 1U);
}

TEST_F(CpuCountTest, ReadsAVersion1Quota) {
  Write("own_cgroup", "5:memory:/service\n4:cpu,cpuacct:/service\n");
  Write("cgroup/cpu,cpuacct/service/cpu.cfs_quota_us", "100000\n");
  Write("cgroup/cpu,cpuacct/service/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(UsableCpuCount(files_), 1U);
}

TEST_F(CpuCountTest, ReadsMinusOneOfVersion1AsNoQuota) {
  Write("own_cgroup", "4:cpu:/\n");
  Write("cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(UsableCpuCount(files_), AffinityCount());
}

TEST_F(CpuCountTest, IgnoresFilesItCannotRead) {
  Write("own_cgroup", "nonsense\n0::/service\n");
  Write("cgroup/service/cpu.max", "many 0\n");
  EXPECT_EQ(UsableCpuCount(files_), AffinityCount());
}

int Niceness() { return getpriority(PRIO_PROCESS, 0); }

TEST(BackgroundPriorityTest, IsThatOfTheCallingThreadAndOfThoseItStarts) {
  const int before = Niceness();
  int own = before;
  int inherited = before;
  std::thread([&] {
    UseBackgroundPriority();
    own = Niceness();
    std::thread([&] { inherited = Niceness(); }).join();
  }).join();
  EXPECT_EQ(own, 10);
  EXPECT_EQ(inherited, own);
  EXPECT_EQ(Niceness(), before) << "of this thread";
}

}  // namespace
}  // namespace simile::base
