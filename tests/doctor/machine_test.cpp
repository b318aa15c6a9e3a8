#include "doctor/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <string>

#include "doctor/gpu_files.h"

namespace simile::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MachineTest : public ::testing::Test {
 protected:
  Machine The() const {
    Machine machine = ThisMachine(files_.root());
    machine.variable = [](const std::string&) { return std::nullopt; };
    return machine;
  }

  const GpuFiles files_;
};

TEST_F(MachineTest, IsAHostWithoutTheMarksOfAContainer) {
  files_.AddFile("/proc/1/cgroup", "0::/init.scope\n");
  EXPECT_EQ(FindPlace(The()), Place::kHost);
}

TEST_F(MachineTest, KnowsContainersByTheirMarks) {
  for (const char* mark : {"/.dockerenv", "/run/.containerenv"}) {
    const GpuFiles files;
    files.AddFile(mark, "");
    EXPECT_EQ(FindPlace(ThisMachine(files.root())), Place::kContainer) << mark;
  }
  files_.AddFile("/proc/1/cgroup", "12:pids:/docker/0123456789abcdef\n");
  EXPECT_EQ(FindPlace(The()), Place::kContainer);
}

TEST_F(MachineTest, KnowsPodsByTheirMarks) {
  files_.AddFile("/proc/1/cgroup", "0::/kubepods.slice/kubepods-burstable.slice\n");
  files_.AddFile("/.dockerenv", "");
  EXPECT_EQ(FindPlace(The()), Place::kPod);
}

TEST_F(MachineTest, FindsNvidiasDisplayControllers) {
  files_.AddCard();
  files_.AddFile("/sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n");
  files_.AddFile("/sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n");
  files_.AddFile("/sys/bus/pci/devices/0000:3b:00.1/vendor", "0x10de\n");  // its sound
  files_.AddFile("/sys/bus/pci/devices/0000:3b:00.1/class", "0x040300\n");
  EXPECT_THAT(FindCards(The()), ElementsAre("0000:3b:00.0"));
}

TEST_F(MachineTest, ReadsTheVersionOfBothKindsOfModule) {
  EXPECT_EQ(ModuleVersion(The()), "");
  files_.AddModule("570.86.15");
  EXPECT_EQ(ModuleVersion(The()), "570.86.15");
  files_.AddFile("/proc/driver/nvidia/version",
                 "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release\n");
  EXPECT_EQ(ModuleVersion(The()), "580.65.06");
}

TEST_F(MachineTest, ListsNodesWithWhatOpeningThemSays) {
  files_.AddNodes();
  files_.AddFile("/dev/nvidia-caps", "");
  files_.AddFile("/dev/nvidia12", "");
  files_.Remove("/dev/nvidia-uvm");
  Machine machine = The();
  machine.open_node = [](const std::filesystem::path& node) {
    return node.filename() == "nvidia12" ? ENXIO : 0;
  };
  std::map<std::string, int> errors;
  for (const DeviceNode& node : ReadNodes(machine, true)) errors[node.path] = node.error;
  EXPECT_EQ(errors, (std::map<std::string, int>{{"/dev/nvidia0", 0},
                                                {"/dev/nvidia12", ENXIO},
                                                {"/dev/nvidiactl", 0},
                                                {"/dev/nvidia-uvm", ENOENT}}));
  machine.open_node = nullptr;
  EXPECT_EQ(ReadNodes(machine, false).size(), 4U);
}

TEST_F(MachineTest, ReadsEachXidOfTheKernelsLogOnce) {
  EXPECT_THAT(ReadKernelXids(The()), IsEmpty());
  files_.AddFile("/dev/kmsg",
                 "6,1,100,-;usb 1-1: new device\n"
                 "3,2,200,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=77, name=python, Ch 00000008\n"
                 "3,3,300,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=78, name=python, Ch 00000008\n"
                 "3,4,400,-;NVRM: Xid (PCI:0000:5e:00): 79, GPU has fallen off the bus.\n");
  const std::vector<XidRecord> records = ReadKernelXids(The());
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].xid, 31U);
  EXPECT_EQ(records[1].xid, 79U);
  EXPECT_EQ(records[1].where, "PCI:0000:5e:00");
}

TEST_F(MachineTest, ReadsWhatDockerHasOfTheToolkit) {
  EXPECT_FALSE(ReadContainerToolkit(The()).docker);
  files_.AddFile("/usr/bin/dockerd", "");
  EXPECT_TRUE(ReadContainerToolkit(The()).docker);
  EXPECT_FALSE(ReadContainerToolkit(The()).installed);
  files_.AddFile("/usr/bin/nvidia-ctk", "");
  files_.AddFile("/var/lib/dpkg/status",
                 "Package: libnvidia-container1\nVersion: 1.16.0-1\n\n"
                 "Package: nvidia-container-toolkit\nStatus: install ok installed\n"
                 "Version: 1.17.4-1\n\nPackage: other\nVersion: 9\n");
  files_.AddFile("/etc/docker/daemon.json", R"({"runtimes": {"nvidia": {"args": []}}})");
  const ContainerToolkit toolkit = ReadContainerToolkit(The());
  EXPECT_TRUE(toolkit.installed);
  EXPECT_TRUE(toolkit.registered);
  EXPECT_EQ(toolkit.version, "1.17.4-1");
}

TEST(IsOlderTest, ComparesNumberByNumber) {
  EXPECT_TRUE(IsOlder("1.17.4-1", "1.17.8"));
  EXPECT_TRUE(IsOlder("1.9.0", "1.17.8"));
  EXPECT_FALSE(IsOlder("1.17.8-1", "1.17.8"));
  EXPECT_FALSE(IsOlder("1.18.0~rc.1-1", "1.17.8"));
  EXPECT_FALSE(IsOlder("2", "1.17.8"));
}

}  // namespace
}  // namespace simile::doctor
