#pragma once

// Sets up the emulated device, injects faults and reports what happened (README.md). One device per
// process; every function may be called from any thread, ResetDevice only while no other thread
// uses the device.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace emulated_cuda {

struct Options {
  std::size_t memory_bytes = std::size_t{1} << 30;
  // 0 runs blocks, threads, streams and graph nodes in order. Any other value shuffles them and
  // changes the order and rounding of sums where CUDA defines neither. The same seed gives the same
  // run if one OS thread runs the blocks.
  std::uint64_t seed = 0;
  int workers = 1;  // OS threads that run the blocks of an ordinary launch
  int compute_capability = 90;
  int code_capability = 0;  // of the PTX that kernels come from; 0: the card's
  int multiprocessors = 4;
  std::size_t shared_bytes_max = std::size_t{227} * 1024;  // per block with opt-in, at most 227 KiB
  std::size_t l2_bytes = std::size_t{4} << 20;
  bool quiet = false;  // reports go to TakeReport only, not also to stderr
};

// Makes a new device: frees all memory and handles of the previous one and clears its faults, calls
// and reports. Without a call the first use makes a device with default options.
void ResetDevice(const Options& options = {});

// Makes the nth matching call from now fail.
struct Fault {
  std::uint64_t nth = 1;
  cudaError_t error = cudaErrorUnknown;
  // An API's name, "launch" for any launch, or a part of a kernel's qualified name; empty matches
  // every call.
  std::string name = {};
  // The device is lost: every later call fails with `error` as well, and queued work is dropped.
  bool sticky = false;
  // The call succeeds, and the work that it queues fails: the device is lost when that work runs.
  // If the call queues nothing, the next call that does takes the fault.
  bool asynchronous = false;
  // The call succeeds, and from then on no queued work completes until EndHang: polls return
  // cudaErrorNotReady, and a call that would wait ends the process, because it would block forever.
  bool hang = false;
};
// In a program of its own the device hangs from when the file exists that the variable
// EMULATED_CUDA_HANG_FILE names.
void InjectFault(const Fault& fault);
// A device that hangs goes on where it stopped.
void EndHang();

// Calls of the runtime and of cuBLAS, and launches, since ResetDevice, except calls that read
// errors. A launch reads "launch:simile::kernels::RowNorms".
std::size_t CallCount();
std::vector<std::string> CallLog();

// How often each profiler range was begun since ResetDevice, by its name after the names of those
// around it: "search/fp16-scan-sm90/finish". And how many are open now, on all threads.
std::map<std::string, std::size_t> RangeCounts();
std::size_t OpenRanges();

// Returns and clears the device faults found so far, one line each, with kernel, block and thread.
std::string TakeReport();

// Memory, handles and registrations that are still alive: 0 when nothing leaked. A call that frees
// or destroys does so even if it returns an error, as on a device.
std::size_t LiveObjects();

// Device bytes requested and not yet freed: in total, and per allocation in order of address.
std::size_t DeviceBytesInUse();
std::vector<std::size_t> Allocations();
// Host memory from cudaMallocHost, cudaHostAlloc and cudaHostRegister.
std::size_t PinnedBytesInUse();

}  // namespace emulated_cuda
