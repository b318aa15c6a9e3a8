#pragma once

#include <string>
#include <vector>

#include "files/scratch_folder.h"

namespace simile::doctor {

// A machine in a scratch folder: its root with device nodes, /proc and /sys, a driver of fakes, and
// the program with a plug-in beside it. Starts without any of them.
class GpuFiles {
 public:
  GpuFiles();

  std::string root() const { return (folder_.path() / "root").string(); }
  std::string program() const { return program_file("simile"); }
  std::string driver_library() const { return Driver("libcuda.so.1"); }
  std::string nvml_library() const { return Driver("libnvidia-ml.so.1"); }
  std::string plugin() const { return program_file("libsimile_cuda.so"); }
  std::string second_plugin() const { return program_file("libsimile_cuda12.so"); }
  std::string card_file() const { return (folder_.path() / "nvml").string(); }
  std::string journal() const { return (folder_.path() / "faults.json").string(); }
  // NAME=VALUE for a program that is to find the fakes and no other driver.
  std::vector<std::string> variables() const;

  // A file below the root.
  void AddFile(const std::string& path, const std::string& text) const;
  void AddCard() const;                               // on the PCI bus
  void AddModule(const std::string& version) const;   // of the kernel
  void AddNodes() const;                              // of one card
  void AddDriver() const;                             // libcuda 570.133.20
  void AddManagement() const;                         // NVML
  void AddPlugin(const std::string& kind) const;      // "working", "no_blas", ...
  void AddSecondPlugin() const;                       // of CUDA 12, beside the other one
  void Remove(const std::string& path) const;         // below the root
  void DescribeCard(const std::string& lines) const;  // as fake_nvml.c reads them
  void WriteJournal(const std::vector<int>& minutes_ago) const;
  // All of it, with a card that works.
  void AddAll() const;

 private:
  std::string program_file(const char* name) const {
    return (folder_.path() / "bin" / name).string();
  }
  std::string Driver(const std::string& name) const {
    return (folder_.path() / "driver" / name).string();
  }

  const ScratchFolder folder_;
};

}  // namespace simile::doctor
