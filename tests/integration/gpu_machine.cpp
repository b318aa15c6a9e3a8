#include "integration/gpu_machine.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace simile::integration {
namespace {

namespace fs = std::filesystem;

std::string Fake(const std::string& name) {
  return std::string(SIMILE_FAKES_DIR) + "/libfake_" + name + ".so";
}

}  // namespace

backend::GpuSearch FakeGpuSearch(const std::string& plugin) {
  return {Fake("cuda_driver"), {Fake(plugin)}};
}

tests::FakeGpuControl& WorkingGpu() {
  void* const plugin = dlopen(Fake("working").c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const symbol = plugin != nullptr ? dlsym(plugin, "FakeGpuControls") : nullptr;
  if (symbol == nullptr) {
    std::fprintf(stderr, "the fake plug-in cannot be loaded: %s\n", dlerror());
    std::abort();
  }
  tests::FakeGpuControl& control = *reinterpret_cast<tests::FakeGpuControl* (*)()>(symbol)();
  control.Reset();
  return control;
}

GpuMachine::GpuMachine(const std::string& plugin) : is_emulated_(plugin == kEmulatedEngine) {
  // Not a symbolic link, because the program looks for its plug-in in its own folder.
  std::error_code other_file_system;
  fs::create_hard_link(SIMILE_PROGRAM, program(), other_file_system);
  if (other_file_system) fs::copy_file(SIMILE_PROGRAM, program());
  fs::create_directory(folder_.path() / "driver");
  fs::create_symlink(Fake("cuda_driver"), folder_.path() / "driver" / "libcuda.so.1");
  const fs::path beside = folder_.path() / "libsimile_cuda.so";
  if (is_emulated_) {
    fs::create_symlink(SIMILE_EMULATED_GPU_FILE, beside);
    fs::create_symlink(SIMILE_EMULATED_CUDA_FILE, folder_.path() / "driver" / "libcublas.so.13");
  } else if (!plugin.empty()) {
    fs::create_symlink(Fake(plugin), beside);
  }
}

void GpuMachine::DescribeCard(const std::string& lines) const {
  const fs::path library = folder_.path() / "driver" / "libnvidia-ml.so.1";
  if (!fs::exists(library)) fs::create_symlink(Fake("nvml"), library);
  folder_.Write("next-card", lines);
  fs::rename(folder_.path() / "next-card", folder_.path() / "card");  // at once, for its readers
}

std::vector<std::string> GpuMachine::variables() const {
  std::vector<std::string> all = {"LD_LIBRARY_PATH=" + (folder_.path() / "driver").string(),
                                  "FAKE_NVML_FILE=" + (folder_.path() / "card").string(),
                                  "SIMILE_GPU_FAULT_JOURNAL=" + journal()};
  if (is_emulated_) {  // the emulated device is small and slow
    all.insert(all.end(), {"SIMILE_GPU_RESERVE_MIB=0", "SIMILE_GPU_BATCH_TIMEOUT=60000",
                           "SIMILE_LIMITS_SEARCH_DEADLINE_DEFAULT=60000",
                           "SIMILE_LIMITS_SEARCH_DEADLINE_MAX=60000"});
  }
  return all;
}

}  // namespace simile::integration
