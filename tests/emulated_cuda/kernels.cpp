#include "emulated_cuda/kernels.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "emulated_cuda/device_state.h"
#include "emulated_cuda/illegal_address.h"

namespace emulated_cuda {
namespace {

std::string KernelName(const void* kernel) {
  Dl_info info{};
  if (dladdr(kernel, &info) == 0 || info.dli_sname == nullptr) return "(unnamed)";
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, nullptr), &std::free);
  std::string name = plain == nullptr ? info.dli_sname : plain.get();
  name.resize(name.rfind('(') == std::string::npos ? name.size() : name.rfind('('));
  // A template's name begins with its return type.
  if (name.rfind("void ", 0) == 0) name.erase(0, 5);
  return name;
}

struct ModuleSearch {
  std::uintptr_t kernel;
  SharedModule found;
};

int VisitModule(dl_phdr_info* info, std::size_t /*bytes*/, void* data) {
  auto& search = *static_cast<ModuleSearch*>(data);
  // The program itself, which is listed without a name, has unrelated thread-local variables.
  if (info->dlpi_name == nullptr || info->dlpi_name[0] == '\0') return 0;
  bool holds_kernel = false;
  std::size_t thread_local_bytes = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type == PT_TLS) thread_local_bytes = part.p_memsz;
    if (part.p_type == PT_LOAD) {
      holds_kernel |= search.kernel - (info->dlpi_addr + part.p_vaddr) < part.p_memsz;
    }
  }
  if (!holds_kernel) return 0;
  if (thread_local_bytes > 0) search.found = {info->dlpi_tls_modid, thread_local_bytes};
  return 1;
}

// The thread-local memory of the kernel's own library, which holds only __shared__ variables.
SharedModule ModuleOf(const void* kernel) {
  ModuleSearch search{reinterpret_cast<std::uintptr_t>(kernel), {}};
  dl_iterate_phdr(&VisitModule, &search);
  return search.found;
}

}  // namespace

Kernel& Kernels::Find(const void* address) {
  const auto found = kernels_.find(address);
  if (found != kernels_.end()) return found->second;
  Kernel& kernel = kernels_[address];
  kernel.name = KernelName(address);
  kernel.module = ModuleOf(address);
  return kernel;
}

void CheckRedZones(const std::string& culprit) {
  const std::string broken = State().memory.BrokenRedZones();
  if (broken.empty()) return;
  Report(culprit + ": " + broken);
  LoseDevice(cudaErrorIllegalAddress);
}

void RunGrid(const void* kernel, dim3 grid, dim3 block, std::size_t dynamic_bytes, bool together,
             const std::function<void()>& body) {
  DeviceState& state = State();
  const Kernel& known = state.kernels.Find(kernel);
  const std::size_t blocks = std::size_t{grid.x} * grid.y * grid.z;
  const bool shuffled = state.options.seed != 0;

  GridRun run;
  run.name = known.name;
  run.grid = grid;
  run.block = block;
  run.dynamic_bytes = dynamic_bytes;
  run.shared_max = state.options.shared_bytes_max;
  run.module = known.module;
  run.body = body;
  const auto workers = static_cast<std::size_t>(std::max(1, state.options.workers));
  const std::size_t count = together ? blocks : std::min(workers, blocks);
  while (state.runners.size() < count) state.runners.push_back(std::make_unique<BlockRunner>());
  for (std::size_t i = 0; i < count; ++i) run.runners.push_back(state.runners[i].get());
  for (BlockRunner* runner : run.runners) runner->Begin(run, state.random.Next(), shuffled);

  std::vector<unsigned> order(blocks);
  for (std::size_t i = 0; i < blocks; ++i) order[i] = static_cast<unsigned>(i);
  if (shuffled) state.random.Shuffle(order, blocks);
  std::atomic<std::size_t> next{0};
  const auto work = [&](BlockRunner* runner) {
    PrepareSignalStack();
    runner->Enter();
    for (std::size_t i = next++; i < blocks && run.error == cudaSuccess; i = next++) {
      runner->Run(order[i]);
    }
    runner->Leave();
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < count; ++i) threads.emplace_back(work, run.runners[i]);
  work(run.runners[0]);
  for (std::thread& thread : threads) thread.join();
  if (run.error != cudaSuccess) LoseDevice(run.error);
  CheckRedZones("kernel " + run.name);
}

}  // namespace emulated_cuda
