#include "engine/snapshots/host_memory.h"

#include <gtest/gtest.h>

#include "files/scratch_folder.h"

namespace simile::engine {
namespace {

// A small /proc and /sys in a scratch folder.
class HostMemoryTest : public testing::Test {
 protected:
  HostMemoryTest() {
    Write("proc/meminfo", "MemTotal:       32000 kB\nMemAvailable:   20000 kB\nCached: 5 kB\n");
  }

  void Write(const std::string& file, const std::string& text) { scratch_.Write(file, text); }

  // Sets up one group of version 2 with a limit, what it uses, and how much of that is page cache:
  // `cache` bytes that were not used lately and `active` bytes that were.
  void WriteGroup2(const std::string& group, const std::string& limit, std::uint64_t used,
                   std::uint64_t cache, std::uint64_t active = 0) {
    const std::string folder = "sys/fs/cgroup" + group;
    Write(folder + "/memory.max", limit + "\n");
    Write(folder + "/memory.current", std::to_string(used) + "\n");
    Write(folder + "/memory.stat", "anon 1\ninactive_file " + std::to_string(cache) +
                                       "\nactive_file " + std::to_string(active) +
                                       "\nfile_dirty 0\nfile_writeback 0\n");
  }

  const ScratchFolder scratch_;
  const std::filesystem::path& root_ = scratch_.path();
};

TEST_F(HostMemoryTest, ReadsWhatTheMachineHasAvailable) {
  const auto memory = ReadHostMemory(root_);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->available_bytes, 20'000U * 1024);
  EXPECT_EQ(memory->origin, "available on the machine");
}

TEST_F(HostMemoryTest, RefusesWithoutMemAvailable) {
  Write("proc/meminfo", "MemTotal: 32000 kB\n");
  EXPECT_EQ(ReadHostMemory(root_).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(HostMemoryTest, CountsCacheAsFreeInAGroupOfVersion2) {
  Write("proc/self/cgroup", "0::/app\n");
  WriteGroup2("/app", "1000000", 700'000, 200'000);
  const auto memory = ReadHostMemory(root_);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->available_bytes, 500'000U);
  EXPECT_EQ(memory->origin, "left by the control group's memory limit");
}

TEST_F(HostMemoryTest, CountsCacheThatWasUsedLatelyAsFree) {
  Write("proc/self/cgroup", "0::/app\n");
  WriteGroup2("/app", "1000000", 700'000, 200'000, 300'000);
  EXPECT_EQ(ReadHostMemory(root_)->available_bytes, 800'000U);
}

TEST_F(HostMemoryTest, DoesNotCountCacheThatIsStillToBeWritten) {
  Write("proc/self/cgroup", "0::/app\n");
  WriteGroup2("/app", "1000000", 700'000, 0);
  const auto with_cache = [this](const std::string& stat) {
    Write("sys/fs/cgroup/app/memory.stat", stat);
    return ReadHostMemory(root_)->available_bytes;
  };
  EXPECT_EQ(with_cache("active_file 100000\ninactive_file 50000\nfile_dirty 30000\n"
                       "file_writeback 20000\n"),
            400'000U);
  EXPECT_EQ(with_cache("active_file 10\nfile_dirty 20\n"), 300'000U);
}

TEST_F(HostMemoryTest, TakesTheTightestOfAllParents) {
  Write("proc/self/cgroup", "0::/slice/app\n");
  WriteGroup2("/slice/app", "max", 10, 0);
  WriteGroup2("/slice", "300000", 100'000, 0);
  EXPECT_EQ(ReadHostMemory(root_)->available_bytes, 200'000U);
}

TEST_F(HostMemoryTest, SeesAContainersOwnGroupAtTheTopOfTheMount) {
  Write("proc/self/cgroup", "0::/docker/0123\n");
  WriteGroup2("", "400000", 100'000, 0);
  EXPECT_EQ(ReadHostMemory(root_)->available_bytes, 300'000U);
}

TEST_F(HostMemoryTest, ReportsNoMemoryWhenAGroupIsOverItsLimit) {
  Write("proc/self/cgroup", "0::/app\n");
  WriteGroup2("/app", "1000", 5'000, 100);
  EXPECT_EQ(ReadHostMemory(root_)->available_bytes, 0U);
}

TEST_F(HostMemoryTest, IgnoresALimitAboveWhatTheMachineHas) {
  Write("proc/self/cgroup", "0::/app\n");
  WriteGroup2("/app", "999999999999", 1, 0);
  EXPECT_EQ(ReadHostMemory(root_)->origin, "available on the machine");
}

TEST_F(HostMemoryTest, ReadsAGroupOfVersion1) {
  Write("proc/self/cgroup", "9:name=systemd:/x\n4:cpuacct,memory:/app\n0::/\n");
  Write("sys/fs/cgroup/memory/app/memory.limit_in_bytes", "1000000\n");
  Write("sys/fs/cgroup/memory/app/memory.usage_in_bytes", "700000\n");
  Write("sys/fs/cgroup/memory/app/memory.stat",
        "inactive_file 1\ntotal_inactive_file 50000\ntotal_active_file 7000\ntotal_dirty 7000\n");
  // "No limit" in version 1 is a huge number.
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");
  EXPECT_EQ(ReadHostMemory(root_)->available_bytes, 350'000U);
}

TEST(HostMemoryOnThisMachineTest, IsReadable) {
  const auto memory = ReadHostMemory();
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_GT(memory->available_bytes, 0U);
}

}  // namespace
}  // namespace simile::engine
