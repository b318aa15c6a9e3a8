#pragma once

#include <string>
#include <vector>

#include "backend/fake_gpu.h"
#include "backend/gpu_search.h"
#include "files/scratch_folder.h"

namespace simile::integration {

// Where a server in this process finds the fake driver and this plug-in ("working", "no_blas",
// ...), whatever the machine has.
backend::GpuSearch FakeGpuSearch(const std::string& plugin);

// The controls of the "working" plug-in in this process, as they were in the beginning.
testing::FakeGpuControl& WorkingGpu();

// A folder with the program, and beside it a plug-in and a driver, which both only pretend: what
// the program meets on a machine with a GPU.
class GpuMachine {
 public:
  //   plugin  as for FakeGpuSearch; empty: none; kEmulatedEngine: the GPU engine itself on the
  //           emulated device, where the tests are built with one
  explicit GpuMachine(const std::string& plugin);
  static constexpr char kEmulatedEngine[] = "emulated_engine";

  std::string program() const { return (folder_.path() / "simile").string(); }
  // The environment in which the program finds the driver, and keeps its journal here.
  std::vector<std::string> variables() const;
  std::string journal() const { return (folder_.path() / "faults.json").string(); }

 private:
  const ScratchFolder folder_;
  const bool is_emulated_;
};

}  // namespace simile::integration
