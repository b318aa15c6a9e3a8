#include "doctor/machine.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <sstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/file_descriptor.h"

namespace simile::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFileBytesMax = 8U << 20;
constexpr int kKernelRecordsMax = 100'000;

// The path below the machine's root. REQUIRES: an absolute path.
fs::path Below(const Machine& machine, std::string_view path) {
  return machine.root / fs::path(path.substr(1));
}

bool Exists(const Machine& machine, std::string_view path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(Below(machine, path), error));
}

// The first kFileBytesMax bytes, or a little more, of a file; empty if it cannot be read.
std::string ReadText(const Machine& machine, std::string_view path) {
  std::ifstream file(Below(machine, path), std::ios::binary);
  std::string text;
  std::array<char, 4'096> block;
  while (text.size() < kFileBytesMax && (file.read(block.data(), block.size()), file.gcount() > 0))
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
  return text;
}

// The names of a folder's entries, sorted; empty if the folder cannot be read.
std::vector<std::string> NamesIn(const Machine& machine, std::string_view folder) {
  std::vector<std::string> names;
  // Avoids std::filesystem's iterator, which ends the process if memory runs out.
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(opendir(Below(machine, folder).c_str()),
                                                   closedir);
  if (opened == nullptr && errno == ENOMEM) throw std::bad_alloc();
  if (opened == nullptr) return names;
  while (const dirent* const entry = readdir(opened.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

bool IsCardNode(std::string_view name) {
  constexpr std::string_view kPrefix = "nvidia";
  if (!name.starts_with(kPrefix) || name.size() == kPrefix.size()) return false;
  return std::ranges::all_of(name.substr(kPrefix.size()),
                             [](unsigned char c) { return std::isdigit(c) != 0; });
}

int OpenNode(const fs::path& node) {
  const base::FileDescriptor opened(open(node.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  return opened.valid() ? 0 : errno;
}

// The number after a text in a line; nullopt if the line lacks it.
std::optional<std::uint64_t> NumberAfter(std::string_view line, std::string_view text) {
  const std::size_t at = line.find(text);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = line.substr(at + text.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

// `NVRM: Xid (PCI:0000:3b:00): 79, pid=...`
std::optional<XidRecord> ParseXid(std::string_view line) {
  constexpr std::string_view kXid = "NVRM: Xid (";
  const std::size_t at = line.find(kXid);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(at + kXid.size());
  const std::optional<std::uint64_t> xid = NumberAfter(rest, "): ");
  if (!xid) return std::nullopt;
  return XidRecord{*xid, std::string(rest.substr(0, rest.find(')')))};
}

// The kernel's log so far, as text; empty if it may not be read. Does not block.
std::string KernelLog(const Machine& machine) {
  const base::FileDescriptor log(
      open(Below(machine, "/dev/kmsg").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string text;
  std::array<char, 16'384> record;
  for (int records = 0; log.valid() && records < kKernelRecordsMax; ++records) {
    const ssize_t bytes = read(log.get(), record.data(), record.size());
    if (bytes < 0 && errno == EPIPE) continue;  // overwritten meanwhile: read the next record
    if (bytes <= 0 || text.size() > kFileBytesMax) break;
    text.append(record.data(), static_cast<std::size_t>(bytes));
  }
  return text;
}

// The numbers at the start of a version: {1, 17, 4} for "1.17.4-1".
std::vector<unsigned> ParseVersion(const std::string& version) {
  std::vector<unsigned> numbers;
  const char* at = version.data();
  const char* const end = at + version.size();
  for (unsigned number = 0; at < end; ++at) {
    const auto [after, error] = std::from_chars(at, end, number);
    if (error != std::errc()) break;
    numbers.push_back(number);
    if (after == end || *after != '.') break;
    at = after;
  }
  return numbers;
}

// The version of an installed Debian package; empty if it is not installed.
std::string PackageVersion(const Machine& machine, std::string_view package) {
  std::istringstream status(ReadText(machine, "/var/lib/dpkg/status"));
  const std::string name = fmt::format("Package: {}", package);
  constexpr std::string_view kVersion = "Version: ";
  bool is_it = false;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Package: ")) is_it = line == name;
    if (is_it && line.starts_with(kVersion)) return line.substr(kVersion.size());
  }
  return {};
}

}  // namespace

Machine ThisMachine(const fs::path& root) {
  return {root,
          [](const std::string& name) -> std::optional<std::string> {
            const char* value = std::getenv(name.c_str());
            if (value == nullptr) return std::nullopt;
            return value;
          },
          OpenNode};
}

Place FindPlace(const Machine& machine) {
  // Variables belong to this process, so they say nothing about another machine's root.
  const bool is_here = machine.root == "/";
  if (is_here && machine.variable("KUBERNETES_SERVICE_HOST")) return Place::kPod;
  if (Exists(machine, "/run/secrets/kubernetes.io")) return Place::kPod;
  const std::string groups = ReadText(machine, "/proc/1/cgroup");
  if (groups.find("kubepods") != std::string::npos) return Place::kPod;
  if (Exists(machine, "/.dockerenv") || Exists(machine, "/run/.containerenv")) {
    return Place::kContainer;
  }
  for (const char* engine : {"docker", "containerd", "libpod", "lxc"}) {
    if (groups.find(engine) != std::string::npos) return Place::kContainer;
  }
  if (is_here && machine.variable("container")) return Place::kContainer;
  return Place::kHost;
}

std::vector<std::string> FindCards(const Machine& machine) {
  constexpr std::string_view kBus = "/sys/bus/pci/devices";
  std::vector<std::string> cards;
  for (const std::string& place : NamesIn(machine, kBus)) {
    const bool is_nvidia =
        ReadText(machine, fmt::format("{}/{}/vendor", kBus, place)).starts_with("0x10de");
    // PCI class 03: display controllers, which include cards that only compute.
    if (is_nvidia &&
        ReadText(machine, fmt::format("{}/{}/class", kBus, place)).starts_with("0x03")) {
      cards.push_back(place);
    }
  }
  return cards;
}

std::string ModuleVersion(const Machine& machine) {
  // `NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan ...`
  std::istringstream words(ReadText(machine, "/proc/driver/nvidia/version"));
  for (std::string word; words >> word;) {
    const bool is_version = std::isdigit(static_cast<unsigned char>(word.front())) != 0 &&
                            word.find('.') != std::string::npos;
    if (is_version) return word;
  }
  return {};
}

std::vector<DeviceNode> ReadNodes(const Machine& machine, bool open) {
  std::vector<DeviceNode> nodes;
  for (const std::string& name : NamesIn(machine, "/dev")) {
    if (IsCardNode(name)) nodes.push_back({fmt::format("/dev/{}", name), 0});
  }
  for (const char* path : {"/dev/nvidiactl", "/dev/nvidia-uvm"}) nodes.push_back({path, 0});
  for (DeviceNode& node : nodes) {
    if (!Exists(machine, node.path)) {
      node.error = ENOENT;
    } else if (open) {
      node.error = machine.open_node(Below(machine, node.path));
    }
  }
  return nodes;
}

std::vector<XidRecord> ReadKernelXids(const Machine& machine) {
  std::vector<XidRecord> records;
  std::istringstream log(KernelLog(machine));
  for (std::string line; std::getline(log, line);) {
    const std::optional<XidRecord> record = ParseXid(line);
    if (!record) continue;
    const bool known = std::ranges::any_of(records, [&record](const XidRecord& seen) {
      return seen.xid == record->xid && seen.where == record->where;
    });
    if (!known) records.push_back(*record);
  }
  return records;
}

ContainerToolkit ReadContainerToolkit(const Machine& machine) {
  ContainerToolkit toolkit;
  for (const char* path : {"/usr/bin/dockerd", "/usr/sbin/dockerd", "/usr/local/bin/dockerd"}) {
    toolkit.docker = toolkit.docker || Exists(machine, path);
  }
  for (const char* path : {"/usr/bin/nvidia-ctk", "/usr/local/bin/nvidia-ctk"}) {
    toolkit.installed = toolkit.installed || Exists(machine, path);
  }
  toolkit.version = PackageVersion(machine, "nvidia-container-toolkit");
  toolkit.registered =
      ReadText(machine, "/etc/docker/daemon.json").find("nvidia") != std::string::npos ||
      Exists(machine, "/etc/cdi/nvidia.yaml") || Exists(machine, "/var/run/cdi/nvidia.yaml");
  return toolkit;
}

bool IsOlder(const std::string& version, const std::string& than) {
  return ParseVersion(version) < ParseVersion(than);
}

}  // namespace simile::doctor
