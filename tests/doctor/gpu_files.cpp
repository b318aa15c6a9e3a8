#include "doctor/gpu_files.h"

#include <chrono>
#include <filesystem>
#include <system_error>

#include "app/gpu/fault_journal.h"

namespace simile::doctor {
namespace {

namespace fs = std::filesystem;

std::string Fake(const std::string& name) {
  return std::string(SIMILE_FAKES_DIR) + "/libfake_" + name + ".so";
}

}  // namespace

GpuFiles::GpuFiles() {
  for (const char* folder : {"root", "bin", "driver"})
    fs::create_directory(folder_.path() / folder);
  // Not a symbolic link, because the program looks for its plug-in in its own folder.
  std::error_code other_file_system;
  fs::create_hard_link(SIMILE_PROGRAM, program(), other_file_system);
  if (other_file_system) fs::copy_file(SIMILE_PROGRAM, program());
}

std::vector<std::string> GpuFiles::variables() const {
  return {"LD_LIBRARY_PATH=" + (folder_.path() / "driver").string(),
          "FAKE_NVML_FILE=" + card_file(), "FAKE_CUDA_ERROR=0",
          "SIMILE_GPU_FAULT_JOURNAL=" + journal(), "SIMILE_BACKEND_TUNING_CACHE="};
}

void GpuFiles::AddFile(const std::string& path, const std::string& text) const {
  folder_.Write("root" + path, text);
}

void GpuFiles::AddCard() const {
  AddFile("/sys/bus/pci/devices/0000:3b:00.0/vendor", "0x10de\n");
  AddFile("/sys/bus/pci/devices/0000:3b:00.0/class", "0x030200\n");
}

void GpuFiles::AddModule(const std::string& version) const {
  AddFile("/proc/driver/nvidia/version",
          "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " + version +
              "  Thu Jan 23 00:00:00 UTC 2025\nGCC version:  gcc version 12.2.0\n");
}

void GpuFiles::AddNodes() const {
  for (const char* node : {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"}) AddFile(node, "");
}

void GpuFiles::AddDriver() const {
  fs::copy_file(Fake("cuda_driver"), Driver("libcuda.so.570.133.20"));
  fs::create_symlink("libcuda.so.570.133.20", driver_library());
}

void GpuFiles::AddManagement() const { fs::create_symlink(Fake("nvml"), nvml_library()); }

void GpuFiles::AddPlugin(const std::string& kind) const {
  fs::remove(plugin());
  fs::create_symlink(Fake(kind), plugin());
}

void GpuFiles::AddSecondPlugin() const { fs::create_symlink(Fake("cuda12"), second_plugin()); }

void GpuFiles::Remove(const std::string& path) const { fs::remove(root() + path); }

void GpuFiles::DescribeCard(const std::string& lines) const { folder_.Write("nvml", lines); }

void GpuFiles::WriteJournal(const std::vector<int>& minutes_ago) const {
  for (const int minutes : minutes_ago) {
    const auto at = std::chrono::system_clock::now() - std::chrono::minutes(minutes);
    static_cast<void>(app::AddToFaultJournal(journal(), {at, "cudaErrorIllegalAddress"}));
  }
}

void GpuFiles::AddAll() const {
  AddCard();
  AddModule("570.133.20");
  AddNodes();
  AddDriver();
  AddManagement();
  AddPlugin("working");
}

}  // namespace simile::doctor
