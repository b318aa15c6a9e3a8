#include "cli/plan/capacity.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <numeric>

#include <fmt/format.h>

#include "backend/accelerator_kinds.h"
#include "backend/cpu/int8_kernel.h"
#include "backend/cpu/int8_pass.h"
#include "base/message_text.h"
#include "certificate/rotation.h"
#include "simile/matrix_view.h"

namespace simile::cli {
namespace {

using backend::SegmentSize;

SegmentSize ToSegmentSize(const PlannedCollection& collection) {
  return {static_cast<unsigned>(collection.rows), static_cast<unsigned>(PaddedDim(collection.dim))};
}

std::uint64_t Fp32Bytes(const PlannedCollection& collection) {
  return collection.rows * PaddedDim(collection.dim) * sizeof(float);
}

std::uint64_t SubtractToZero(std::uint64_t all, std::uint64_t taken) {
  return all - std::min(all, taken);
}

SpeedFloor EstimateFloor(const char* where, std::uint32_t batch, std::uint64_t pass_bytes,
                         std::uint32_t passes, double products, const SpeedLimits& limits) {
  SpeedFloor floor;
  floor.where = where;
  floor.batch = batch;
  floor.seconds = static_cast<double>(pass_bytes) * passes / limits.FindRate(pass_bytes);
  if (limits.products_per_s == 0) return floor;
  const double multiplying = products / limits.products_per_s;
  floor.is_arithmetic = multiplying > floor.seconds;
  floor.seconds = std::max(floor.seconds, multiplying);
  return floor;
}

}  // namespace

PlannedCollection PlanCollection(PlannedCollection collection, const engine::DataBytes& data,
                                 const backend::cpu::Int8Options& options) {
  const std::size_t rows = collection.rows;
  collection.is_sampled = data.is_sampled;
  collection.memory = engine::PlanMemory(
      data, backend::cpu::PlanInt8(options, {rows, collection.dim, collection.metric}));
  const auto packed = backend::cpu::PackedShapeFor(options, rows, collection.dim);
  collection.batch_bytes =
      packed ? packed->position_count() * packed->rotated_dim : Fp32Bytes(collection);
  collection.one_query_bytes =
      packed && packed->has_int4 ? collection.batch_bytes / 2 : collection.batch_bytes;
  return collection;
}

HostPlan PlanHost(std::span<const PlannedCollection> collections, std::uint64_t pinned_bytes) {
  HostPlan plan;
  plan.rest_bytes = kProgramBytes + pinned_bytes;
  for (const PlannedCollection& each : collections) plan.rest_bytes += each.memory.resident.host();
  plan.reload_bytes = plan.rest_bytes;
  for (const PlannedCollection& each : collections) {
    const std::uint64_t own = each.memory.resident.host();
    const std::uint64_t others = plan.rest_bytes - own;
    plan.reload_bytes =
        std::max(plan.reload_bytes, others + each.memory.ReloadPeakBytes(own, false));
    plan.held_bytes = std::max(plan.held_bytes, others + each.memory.ReloadPeakBytes(own, true));
  }
  return plan;
}

bool DevicePlan::fits() const {
  return workspace_fits &&
         std::ranges::all_of(shares, [](const DeviceShare& share) { return share.fits; });
}

DevicePlan PlanDevice(std::span<const PlannedCollection> collections,
                      const backend::GpuOptions& options, std::uint64_t memory_bytes) {
  DevicePlan plan;
  plan.memory_bytes = memory_bytes;
  plan.budget_bytes = backend::GpuBudgetBytes(options, memory_bytes);
  for (const backend::WorkspaceSize& size : backend::SizesToTry(options.workspace)) {
    plan.workspace = size;
    plan.workspace_bytes = backend::WorkspaceBytes(size);
    plan.workspace_fits = plan.workspace_bytes <= plan.budget_bytes;
    if (plan.workspace_fits) break;
  }
  plan.rest_bytes = plan.workspace_bytes;
  plan.needed_bytes = plan.workspace_bytes;
  for (const PlannedCollection& each : collections) {
    DeviceShare share;
    const std::uint64_t free = SubtractToZero(plan.budget_bytes, plan.rest_bytes);
    share.size = backend::PlanResidentIn(free, ToSegmentSize(each), options.int8_rows);
    share.fits = plan.workspace_fits && share.size.total() <= free;
    plan.needed_bytes += share.size.total();
    if (share.fits) plan.rest_bytes += share.size.total();
    plan.shares.push_back(share);
  }
  plan.reload_bytes = plan.rest_bytes;
  for (std::size_t i = 0; i < plan.shares.size(); ++i) {
    const std::uint64_t free = SubtractToZero(plan.budget_bytes, plan.rest_bytes);
    const std::uint64_t second =
        backend::PlanResidentIn(free, ToSegmentSize(collections[i]), options.int8_rows).total();
    plan.shares[i].second_bytes = second;
    plan.shares[i].reload_fits = plan.shares[i].fits && second <= free;
    if (!plan.shares[i].reload_fits) continue;
    plan.reload_bytes =
        std::max(plan.reload_bytes, plan.rest_bytes + second + backend::kResidentBuildBytes);
  }
  return plan;
}

std::vector<std::string> Choices(std::span<const PlannedCollection> collections,
                                 const DevicePlan& plan, const backend::GpuOptions& options) {
  std::vector<std::string> choices;
  const auto memory = static_cast<double>(plan.memory_bytes);
  const auto fraction_for = [&](std::uint64_t reserve) {
    return std::ceil(static_cast<double>(plan.needed_bytes + reserve) / memory * 100) / 100;
  };
  // The least memory that a driver and its contexts take.
  constexpr std::uint64_t kLeastReserve = std::uint64_t{512} << 20;
  if (const double fraction = fraction_for(options.reserve_bytes); fraction <= 1) {
    choices.push_back(fmt::format("raise gpu.memory_fraction to {:.2f}", fraction));
  } else if (options.reserve_bytes > kLeastReserve && fraction_for(kLeastReserve) <= 1) {
    choices.push_back(fmt::format("gpu.memory_fraction {:.2f} and gpu.reserve_mib {}",
                                  fraction_for(kLeastReserve), kLeastReserve >> 20));
  }
  const std::uint64_t rows_bytes = plan.needed_bytes - plan.workspace_bytes;
  const std::uint64_t per_card = SubtractToZero(plan.budget_bytes, plan.workspace_bytes);
  if (per_card > 0) {
    const std::uint64_t cards = (rows_bytes + per_card - 1) / per_card;
    if (cards > 1) {
      choices.push_back(fmt::format("{} servers with such a card, each with a part of the {}",
                                    cards, collections.size() > 1 ? "collections" : "rows"));
    }
  }
  const double card =
      static_cast<double>(plan.needed_bytes + options.reserve_bytes) / options.memory_fraction;
  choices.push_back(fmt::format("a card of {}", base::BytesText(static_cast<std::uint64_t>(card))));
  std::uint64_t host = 0;
  for (const PlannedCollection& each : collections) host += each.memory.resident.host();
  choices.push_back(fmt::format("CPU ({} on the host)", base::BytesText(host)));
  return choices;
}

double SpeedLimits::FindRate(std::uint64_t pass_bytes) const {
  // Takes the rate of the largest measured size that is not larger. A smaller size is read faster,
  // so a floor stays a floor.
  const auto larger = std::ranges::upper_bound(cached, pass_bytes, {}, &Cached::bytes);
  if (larger != cached.begin()) return std::prev(larger)->bytes_per_s;
  return cached.empty() ? bytes_per_s : cached.front().bytes_per_s;
}

SpeedFloor FloorOnHost(const PlannedCollection& collection, std::uint32_t batch,
                       const SpeedLimits& limits) {
  const std::uint64_t bytes =
      batch <= backend::cpu::kQueriesTogether ? collection.one_query_bytes : collection.batch_bytes;
  return EstimateFloor("cpu", batch, bytes, 1,
                       static_cast<double>(collection.rows) *
                           static_cast<double>(certificate::RotatedDim(collection.dim)) * batch,
                       limits);
}

double ScanProductsPerS(int capability, double products_per_s, double fp32_products_per_s) {
  if (capability >= backend::kTensorScanMin || capability == 0) return products_per_s;
  // 32 shuffles fetch the operands of 64 multiply-adds (kernels/device.h). Per clock a
  // multiprocessor shuffles 32 lanes, and multiplies 128 lanes on sm_61 and 64 on sm_70 (table of
  // instructions in the "CUDA C++ Programming Guide"). So on sm_61 shuffles take twice as long as
  // multiplying.
  constexpr int kWideFp32 = 61;
  return capability == kWideFp32 ? fp32_products_per_s / 2 : fp32_products_per_s;
}

PassKind ChoosePassKind(const PlannedCollection& collection, std::uint32_t batch, int capability,
                        const backend::ResidentSize& resident) {
  const backend::GpuTuning tuning;
  const auto has = [&](int least) { return capability == 0 || capability >= least; };
  if (collection.rows <= tuning.canonical_rows_max) return PassKind::kCanonical;
  if (batch > tuning.scan_queries_max) {
    return has(backend::kTensorProductsMin) ? PassKind::kGemm : PassKind::kFp32Gemm;
  }
  if (resident.int8_rows > 0 && has(backend::kInt8ScanMin)) return PassKind::kInt8Scan;
  if (has(backend::kRingScanMin)) return PassKind::kRingScan;
  return has(backend::kTensorScanMin) ? PassKind::kRegisterScan : PassKind::kFp32Scan;
}

SpeedFloor FloorOnDevice(const PlannedCollection& collection, std::uint32_t batch, std::uint32_t k,
                         const backend::WorkspaceSize& workspace, const DeviceSpeed& speed,
                         const backend::ResidentSize& resident) {
  const unsigned together = std::max(backend::PassQueriesMax(workspace, k), 1U);
  const std::uint32_t passes = (batch + together - 1) / together;
  const SegmentSize size = ToSegmentSize(collection);
  const std::uint64_t fp16_bytes = backend::PlanResident(size, false).fp16_rows;
  std::uint64_t bytes = fp16_bytes;
  std::uint64_t queries = batch;
  // The fewest queries that one tensor-core instruction multiplies.
  constexpr unsigned kInt8Queries = 8, kFp16Queries = 16;
  SpeedLimits limits = speed.limits;
  switch (ChoosePassKind(collection, batch, speed.capability, resident)) {
    case PassKind::kCanonical:
      bytes = resident.rows > 0 ? resident.rows : 2 * fp16_bytes;
      limits.products_per_s = 0;
      break;
    case PassKind::kInt8Scan:
      bytes = resident.int8_rows;
      queries = std::max(std::bit_ceil(batch), kInt8Queries);
      limits.products_per_s = speed.scan_products_per_s;
      break;
    case PassKind::kRingScan:
    case PassKind::kRegisterScan:
    case PassKind::kFp32Scan:
      queries = std::max(std::bit_ceil(batch), kFp16Queries);
      limits.products_per_s = speed.scan_products_per_s;
      break;
    case PassKind::kGemm:
    case PassKind::kFp32Gemm:
      break;
  }
  return EstimateFloor("gpu", batch, bytes, passes,
                       static_cast<double>(fp16_bytes) / 2 * static_cast<double>(queries), limits);
}

std::uint32_t HostPassQueries(const PlannedCollection& collection, std::uint32_t k,
                              std::uint32_t batch, unsigned threads) {
  QuerySpec spec;
  spec.k = k;
  const std::vector<QuerySpec> specs(batch, spec);
  std::vector<std::uint32_t> queries(batch);
  std::iota(queries.begin(), queries.end(), 0U);
  return static_cast<std::uint32_t>(
      backend::cpu::QueriesOfInt8Pass(specs, queries, collection.rows, threads));
}

}  // namespace simile::cli
