#pragma once

#include <string>
#include <vector>

#include "backend/fake_gpu.h"
#include "backend/gpu_search.h"
#include "files/scratch_folder.h"
#include "simile/v1/types.pb.h"

namespace simile::integration {

inline constexpr auto kCpu = v1::BACKEND_KIND_CPU;
inline constexpr auto kGpu = v1::BACKEND_KIND_GPU;

// Returns where a server in this process finds the fake driver and this plug-in ("working",
// "no_blas", ...).
backend::GpuSearch FakeGpuSearch(const std::string& plugin);

// Resets and returns the controls of the "working" plug-in in this process.
tests::FakeGpuControl& WorkingGpu();

// A folder with the program, a fake plug-in and a fake driver, as on a machine with a GPU.
class GpuMachine {
 public:
  //   plugin  as for FakeGpuSearch; empty: none; kEmulatedEngine: the real GPU engine on the
  //           emulated device, if the tests are built with it
  explicit GpuMachine(const std::string& plugin);
  static constexpr char kEmulatedEngine[] = "emulated_engine";

  std::string program() const { return (folder_.path() / "simile").string(); }
  // Adds the fake management library, or changes the card that it describes in these lines
  // (tests/backend/fake_nvml.c). May be called while a program runs.
  void DescribeCard(const std::string& lines) const;

  // Environment variables that point to the driver, the card and the journal.
  std::vector<std::string> variables() const;
  std::string journal() const { return (folder_.path() / "faults.json").string(); }

 private:
  const ScratchFolder folder_;
  const bool is_emulated_;
};

}  // namespace simile::integration
