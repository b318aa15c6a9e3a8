#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace simile::doctor {

// Where this process runs, as far as it can tell.
enum class Place : std::uint8_t { kHost, kContainer, kPod };

// What doctor reads of a machine besides the libraries that it calls.
struct Machine {
  // The folder that holds its /dev, /proc, /sys, /etc and /usr: "/" for this machine, "/host" for
  // the host's files mounted into a container, a scratch folder for tests.
  std::filesystem::path root = "/";
  // An environment variable; nullopt when it is not set.
  std::function<std::optional<std::string>(const std::string& name)> variable;
  // Opens a device node and closes it again; returns errno, 0 for success.
  std::function<int(const std::filesystem::path& node)> open_node;
};
// This machine, with the environment of this process.
Machine ThisMachine(const std::filesystem::path& root = "/");

struct DeviceNode {
  std::string path;  // "/dev/nvidia0"
  int error = 0;     // errno of opening it; ENOENT when it is missing
};

struct XidRecord {
  std::uint64_t xid = 0;
  std::string where;  // "PCI:0000:3b:00"
};

// What Docker on this machine needs to give a card to containers.
struct ContainerToolkit {
  bool docker = false;      // Docker is installed
  bool installed = false;   // nvidia-container-toolkit is
  std::string version;      // of its Debian package; empty when unknown
  bool registered = false;  // Docker knows the runtime nvidia, or the devices of CDI
};

// Each reads files only, and none of them blocks, except ReadNodes: a driver may take seconds to
// wake a card, and a broken one may never return.
Place FindPlace(const Machine& machine);
// The places on the bus of NVIDIA's cards: "0000:3b:00.0".
std::vector<std::string> FindCards(const Machine& machine);
// "570.133.20": of the loaded kernel module; empty when there is none. A container sees its host's.
std::string ModuleVersion(const Machine& machine);
// The nodes of cards that exist, then nvidiactl and nvidia-uvm, existing or not.
//   open  false: tells only which exist
std::vector<DeviceNode> ReadNodes(const Machine& machine, bool open);
// Xid errors in the kernel's log, each number and card once; none where the log may not be read.
std::vector<XidRecord> ReadKernelXids(const Machine& machine);
ContainerToolkit ReadContainerToolkit(const Machine& machine);

// Whether a version is older than another, number by number: "1.17.4-1" than "1.17.8". Pure.
bool IsOlder(const std::string& version, const std::string& than);

}  // namespace simile::doctor
