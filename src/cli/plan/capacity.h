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

// The memory that collections take, and the least time of their answers. Pure arithmetic over the
// same functions that the publisher uses to reserve memory and the GPU plug-in to allocate it.

// Bytes of the serving program without collections: code, libraries, gRPC, threads, and the buffers
// for passes of 256 queries, the largest that a load measures. Measured by
// tests/bench/memory_plan.py; grows with connections and larger batches.
inline constexpr std::uint64_t kProgramBytes = std::uint64_t{32} << 20;

// A collection that is to be loaded, or that a server has loaded.
struct PlannedCollection {
  std::string name;
  std::uint64_t rows = 0;
  std::uint32_t dim = 0;
  Metric metric = Metric::kCosine;
  std::uint64_t users = 0;
  bool is_loaded = false;   // the bytes come from a server, which does not report DataBytes::build
  bool is_sampled = false;  // as DataBytes::is_sampled
  engine::MemoryPlan memory;  // includes the CPU engine's index
  // Bytes of host memory that a pass reads: for one query, and for many queries.
  std::uint64_t one_query_bytes = 0;
  std::uint64_t batch_bytes = 0;
};

// Sets the collection's memory and pass bytes, with the CPU engine's index that `options` would
// build.
PlannedCollection PlanCollection(PlannedCollection collection, const engine::DataBytes& data,
                                 const backend::cpu::Int8Options& options);

// Host memory in bytes for all collections and the program together.
struct HostPlan {
  std::uint64_t rest_bytes = 0;    // while nothing loads
  std::uint64_t reload_bytes = 0;  // the peak while the largest reload runs
  std::uint64_t held_bytes = 0;    // the same peak while callers still read the former generation
};
//   pinned_bytes  pinned host memory of the GPU's workspace; 0 without a GPU
HostPlan PlanHost(std::span<const PlannedCollection> collections, std::uint64_t pinned_bytes);

// The part of a collection that a card holds.
struct DeviceShare {
  backend::ResidentSize size;
  bool fits = false;         // false: the CPU answers for it (gpu.when_full)
  bool reload_fits = false;  // a second generation fits beside everything else
  // Bytes of the second generation, without fp32 rows if they do not fit.
  std::uint64_t second_bytes = 0;
};
struct DevicePlan {
  std::uint64_t memory_bytes = 0;
  std::uint64_t budget_bytes = 0;  // how much of it may be taken
  bool workspace_fits = false;
  backend::WorkspaceSize workspace;  // the smallest workspace if none fits
  std::uint64_t workspace_bytes = 0;
  std::vector<DeviceShare> shares;  // one per collection, in the order of loading
  std::uint64_t rest_bytes = 0;     // of the collections that fit
  std::uint64_t reload_bytes = 0;   // the peak while one of these is reloaded
  std::uint64_t needed_bytes = 0;   // of all collections, without fp32 rows that do not fit
  bool fits() const;
};
DevicePlan PlanDevice(std::span<const PlannedCollection> collections,
                      const backend::GpuOptions& options, std::uint64_t memory_bytes);

// Ways to serve collections that do not fit on a card, one text per choice: "raise
// gpu.memory_fraction to 0.98".
std::vector<std::string> Choices(std::span<const PlannedCollection> collections,
                                 const DevicePlan& plan, const backend::GpuOptions& options);

// The least time of a batch.
struct SpeedFloor {
  std::string where;  // "cpu", "gpu"
  std::uint32_t batch = 0;
  double seconds = 0;
  bool is_arithmetic = false;  // true: multiplying takes longer than reading
  double queries_per_s() const { return batch / seconds; }
};

// Upper bounds on the speed of a machine or a card. 0: unknown, and not counted.
struct SpeedLimits {
  double bytes_per_s = 0;     // from memory
  double products_per_s = 0;  // multiply-adds
  // The rate of reading the same `bytes` repeatedly, so from caches.
  struct Cached {
    std::uint64_t bytes;
    double bytes_per_s;
  };
  std::vector<Cached> cached;  // ascending by bytes; empty: unknown

  // The rate in bytes per second at which a pass over pass_bytes reads.
  double FindRate(std::uint64_t pass_bytes) const;
};
// The floor of the CPU engine, which reads the codes once and multiplies them with each query.
SpeedFloor FloorOnHost(const PlannedCollection& collection, std::uint32_t batch,
                       const SpeedLimits& limits);

// Upper bounds on the speed of a card.
struct DeviceSpeed {
  SpeedLimits limits;              // of its memory, and of products in large batches
  double scan_products_per_s = 0;  // of the fused scans; 0: unknown, and not counted
  int capability = 0;  // 75 for sm_75; 0: unknown, planned as a card with every strategy
};
// Multiply-adds per second of the fused scans on a card of this capability.
//   products_per_s       of its tensor cores
//   fp32_products_per_s  without them
double ScanProductsPerS(int capability, double products_per_s, double fp32_products_per_s);

// The kind of pass that answers a batch on a card: the strategy (docs/design/gpu-engine.md) and the
// card's arithmetic for it.
enum class PassKind : std::uint8_t {
  kCanonical,     // few rows: computes all canonical scores
  kInt8Scan,      // a scan of the int8 rows
  kRingScan,      // a scan of the fp16 rows, copied in the background
  kRegisterScan,  // a scan of the fp16 rows through registers
  kFp32Scan,      // the same without tensor cores
  kGemm,          // matrix products by tiles
  kFp32Gemm,      // the same without tensor cores
};
PassKind ChoosePassKind(const PlannedCollection& collection, std::uint32_t batch, int capability,
                        const backend::ResidentSize& resident);

// The floor of the GPU engine. Each pass reads once the rows that its kind uses, and multiplies
// them. A scan multiplies for as many queries as its instructions hold, even if the batch has
// fewer. int8 rows need twice the products of fp16 rows, because they have two planes, and take as
// long.
//   k         hits per query
//   resident  what the card holds of the collection
SpeedFloor FloorOnDevice(const PlannedCollection& collection, std::uint32_t batch, std::uint32_t k,
                         const backend::WorkspaceSize& workspace, const DeviceSpeed& speed,
                         const backend::ResidentSize& resident);

// The most queries that one pass of the CPU engine answers; a larger batch takes several.
std::uint32_t HostPassQueries(const PlannedCollection& collection, std::uint32_t k,
                              std::uint32_t batch, unsigned threads);

}  // namespace simile::cli
