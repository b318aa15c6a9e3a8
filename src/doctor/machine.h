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

// Access to a machine's files, variables and device nodes, which doctor reads besides calling
// libraries.
struct Machine {
  // The folder that holds its /dev, /proc, /sys, /etc and /usr: "/" for this machine, "/host" for
  // the host's files mounted into a container, a scratch folder for tests.
  std::filesystem::path root = "/";
  // Returns an environment variable; nullopt if it is not set.
  std::function<std::optional<std::string>(const std::string& name)> variable;
  // Opens a device node and closes it again; returns errno, 0 for success.
  std::function<int(const std::filesystem::path& node)> open_node;
};
// This machine, with the environment of this process.
Machine ThisMachine(const std::filesystem::path& root = "/");

struct DeviceNode {
  std::string path;  // "/dev/nvidia0"
  int error = 0;     // errno of opening it; ENOENT if it is missing
};

struct XidRecord {
  std::uint64_t xid = 0;
  std::string where;  // "PCI:0000:3b:00"
};

// What Docker on this machine needs to give a card to containers.
struct ContainerToolkit {
  bool docker = false;      // Docker is installed
  bool installed = false;   // nvidia-container-toolkit is installed
  std::string version;      // version of its Debian package; empty if unknown
  bool registered = false;  // Docker knows the runtime nvidia, or CDI devices
};

// These functions only read files and do not block. The exception is ReadNodes: a driver may take
// seconds to wake a card, and a broken driver may never return.
Place FindPlace(const Machine& machine);
// The PCI addresses of NVIDIA's cards: "0000:3b:00.0".
std::vector<std::string> FindCards(const Machine& machine);
// "570.133.20": the version of the loaded kernel module; empty if none is loaded. A container sees
// its host's module.
std::string ModuleVersion(const Machine& machine);
// The existing nodes of cards, then nvidiactl and nvidia-uvm, even if these do not exist.
//   open  false: only checks which exist
std::vector<DeviceNode> ReadNodes(const Machine& machine, bool open);
// Xid errors in the kernel's log, each number and card once; empty if the log may not be read.
std::vector<XidRecord> ReadKernelXids(const Machine& machine);
ContainerToolkit ReadContainerToolkit(const Machine& machine);

// Whether a version is older than another, compared number by number: "1.17.4-1" is older than
// "1.17.8". Pure.
bool IsOlder(const std::string& version, const std::string& than);

}  // namespace simile::doctor
