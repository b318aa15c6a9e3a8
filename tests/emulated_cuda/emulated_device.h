#pragma once

// How a test sets up the emulated device, makes it fail, and asks what happened. README.md says
// what the device is and is not. One device a process; every function may be called from any
// thread, but ResetDevice only while no other thread uses the device.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace emulated_cuda {

struct Options {
  std::size_t memory_bytes = std::size_t{1} << 30;
  // 0 runs blocks, threads, streams and graph nodes in order. Any other shuffles them, and changes
  // the order and rounding of sums where a device promises neither. Same seed, same run, as long as
  // one OS thread runs the blocks.
  std::uint64_t seed = 0;
  int workers = 1;  // OS threads that run the blocks of an ordinary launch
  int compute_capability = 90;
  int multiprocessors = 4;
  std::size_t shared_bytes_max =
      std::size_t{227} * 1024;  // what a block may ask for, at most 227 KiB
  std::size_t l2_bytes = std::size_t{4} << 20;
  bool quiet = false;  // reports go to TakeReport only, and not to stderr as well
};

// A new device: frees all memory and handles of the one before, and forgets its faults, calls and
// reports. Without a call the first use of the device makes one from default options.
void ResetDevice(const Options& options = {});

// The nth matching call from now on goes wrong.
struct Fault {
  std::uint64_t nth = 1;
  cudaError_t error = cudaErrorUnknown;
  // An API's name, "launch" for any launch, or a part of a kernel's qualified name; empty matches
  // every call.
  std::string name = {};
  // The device is lost: every later call fails with `error` as well, and queued work is dropped.
  bool sticky = false;
  // The call succeeds, and the work that it queues fails: the device is lost when that work runs.
  // A call that queues nothing hands this on to the next one that does.
  bool asynchronous = false;
  // The call succeeds, and from then on no queued work of the device completes: polls answer
  // cudaErrorNotReady, and what would wait ends the process, as it would block for ever.
  bool hang = false;
};
void InjectFault(const Fault& fault);

// Calls of the runtime and of cuBLAS, and launches, since ResetDevice; all but the ones that ask
// for errors. A launch reads "launch:simile::kernels::RowNorms".
std::size_t CallCount();
std::vector<std::string> CallLog();

// The device faults found since the last call, a line each, with kernel, block and thread.
std::string TakeReport();

// Memory, handles and registrations that are still alive: 0 when nothing leaked. A call that frees
// or destroys does so whatever it returns, as on a device.
std::size_t LiveObjects();

// Bytes asked for and not yet freed, on the device, and of each allocation in order of address.
std::size_t DeviceBytesInUse();
std::vector<std::size_t> Allocations();
// Host memory from cudaMallocHost, cudaHostAlloc and cudaHostRegister.
std::size_t PinnedBytesInUse();

}  // namespace emulated_cuda
