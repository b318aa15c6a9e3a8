#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/int8_backend.h"
#include "backend/gpu_memory.h"
#include "backend/gpu_options.h"
#include "engine/snapshots/memory_plan.h"
#include "simile/query.h"

namespace simile::cli {

// What collections take, and the least time of their answers. Pure arithmetic, from the functions
// by which the publisher reserves and the GPU plug-in allocates.

// The program itself while it serves: code and libraries, gRPC, threads, and the buffers of passes
// of 256 queries, by which a load measures its searches.
// Measured by tests/bench/memory_plan.py; grows with connections and larger batches.
inline constexpr std::uint64_t kProgramBytes = std::uint64_t{32} << 20;

// A collection that is to be loaded, or that a server has loaded.
struct PlannedCollection {
  std::string name;
  std::uint64_t rows = 0;
  std::uint32_t dim = 0;
  Metric metric = Metric::kCosine;
  std::uint64_t users = 0;
  bool is_loaded = false;     // its bytes are the server's, which knows nothing of DataBytes::build
  bool is_sampled = false;    // DataBytes::is_sampled
  engine::MemoryPlan memory;  // with the CPU engine's index
  // What a pass reads of the host's memory: for one query, and for many.
  std::uint64_t one_query_bytes = 0;
  std::uint64_t batch_bytes = 0;
};

// The collection with the CPU engine's index, as `options` would build it.
PlannedCollection PlanCollection(PlannedCollection collection, const engine::DataBytes& data,
                                 const backend::cpu::Int8Options& options);

// The host's memory for all collections together, the program included.
struct HostPlan {
  std::uint64_t rest_bytes = 0;
  std::uint64_t reload_bytes = 0;  // the most while the collection that needs the most is replaced
  std::uint64_t held_bytes = 0;    // ... and callers still read its former generation
};
//   pinned_bytes  of the GPU's workspace; 0 without a GPU
HostPlan PlanHost(std::span<const PlannedCollection> collections, std::uint64_t pinned_bytes);

// The part of a collection that a card holds.
struct DeviceShare {
  backend::ResidentSize size;
  bool fits = false;               // else the CPU answers for it (gpu.when_full)
  bool reload_fits = false;        // a second generation beside everything
  std::uint64_t second_bytes = 0;  // of that, perhaps without the fp32 rows
};
struct DevicePlan {
  std::uint64_t memory_bytes = 0;
  std::uint64_t budget_bytes = 0;  // that may be taken
  bool workspace_fits = false;
  backend::WorkspaceSize workspace;  // the smallest one where none fits
  std::uint64_t workspace_bytes = 0;
  std::vector<DeviceShare> shares;  // of each collection, loaded one after the other
  std::uint64_t rest_bytes = 0;     // of what fits
  std::uint64_t reload_bytes = 0;   // the most while one that fits is replaced
  std::uint64_t needed_bytes = 0;  // of everything at rest, without fp32 rows where they do not fit
  bool fits() const;
};
DevicePlan PlanDevice(std::span<const PlannedCollection> collections,
                      const backend::GpuOptions& options, std::uint64_t memory_bytes);

// How to serve collections that do not fit on a card, one choice each: "raise gpu.memory_fraction
// to 0.98".
std::vector<std::string> Choices(std::span<const PlannedCollection> collections,
                                 const DevicePlan& plan, const backend::GpuOptions& options);

// The least time of a batch.
struct SpeedFloor {
  std::string where;  // "cpu", "gpu"
  std::uint32_t batch = 0;
  double seconds = 0;
  bool is_arithmetic = false;  // multiplying takes longer than reading
  double queries_per_s() const { return batch / seconds; }
};

// How fast a machine or a card is at best. 0: not known, and left out.
struct SpeedLimits {
  double bytes_per_s = 0;     // read from memory
  double products_per_s = 0;  // multiply-adds
  // What is read again and again from caches.
  struct Cached {
    std::uint64_t bytes;
    double bytes_per_s;
  };
  std::vector<Cached> cached;  // the smallest first; empty: not known

  // At which passes over so many bytes are read.
  double FindRate(std::uint64_t pass_bytes) const;
};
// Of the CPU engine: reads the codes once, and multiplies them with each query.
SpeedFloor FloorOnHost(const PlannedCollection& collection, std::uint32_t batch,
                       const SpeedLimits& limits);

// How fast a card is at best.
struct DeviceSpeed {
  SpeedLimits limits;              // of its memory, and of the products of large batches
  double scan_products_per_s = 0;  // of the fused scans; 0: not known, and left out
  int capability = 0;              // 75 for sm_75; 0: not known, planned as one with every strategy
};
// The rate at which the fused scans multiply on a card of this capability.
//   products_per_s       of its tensor cores
//   fp32_products_per_s  without them
double ScanProductsPerS(int capability, double products_per_s, double fp32_products_per_s);

// What answers a batch on a card: its strategy (docs/design/gpu-engine.md), and the arithmetic that
// the card has for it.
enum class PassKind : std::uint8_t {
  kCanonical,     // few rows: canonical scores of all
  kInt8Scan,      // a scan of the int8 rows
  kRingScan,      // of the fp16 rows, with copies in the background
  kRegisterScan,  // of the fp16 rows, through registers
  kFp32Scan,      // the same where tensor cores cannot be used
  kGemm,          // matrix products by tiles
  kFp32Gemm,      // the same without tensor cores
};
PassKind ChoosePassKind(const PlannedCollection& collection, std::uint32_t batch, int capability,
                        const backend::ResidentSize& resident);

// Of the GPU engine: reads the rows of the kind of pass once for each pass, and multiplies them; a
// scan for as many queries as its instructions hold. Twice as many products of bytes, in two
// planes, take as long as those in fp16.
//   k         hits of each query
//   resident  what the card holds of it
SpeedFloor FloorOnDevice(const PlannedCollection& collection, std::uint32_t batch, std::uint32_t k,
                         const backend::WorkspaceSize& workspace, const DeviceSpeed& speed,
                         const backend::ResidentSize& resident);

// The most queries that one pass of the CPU engine answers; a larger batch takes several.
std::uint32_t HostPassQueries(const PlannedCollection& collection, std::uint32_t k,
                              std::uint32_t batch, unsigned threads);

}  // namespace simile::cli
