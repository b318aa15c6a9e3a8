// Compiled with -mamx-tile -mamx-int8. REQUIRES: the process may use tiles, which
// SupportedInt8Kernels() requests.
#include <immintrin.h>

#include "backend/cpu/int8_kernel.h"
#include "bench/register_peak.h"

namespace simile::bench {
namespace {

constexpr std::size_t kTileBytes = 1'024;
constexpr int kTileStride = 64;

std::uint64_t Run(const std::uint8_t* operands, std::size_t turns) {
  backend::cpu::kInt8Amx.enter(backend::cpu::kTileQueries);  // whole tiles
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, operands, kTileStride);
  _tile_loadd(5, operands + kTileBytes, kTileStride);
  _tile_loadd(6, operands + 2 * kTileBytes, kTileStride);
  _tile_loadd(7, operands + 3 * kTileBytes, kTileStride);
  for (std::size_t turn = 0; turn < turns; ++turn) {
    _tile_dpbsud(0, 4, 6);
    _tile_dpbsud(1, 4, 7);
    _tile_dpbsud(2, 5, 6);
    _tile_dpbsud(3, 5, 7);
  }
  alignas(64) std::uint32_t sums[4][kTileBytes / 4];
  _tile_stored(0, sums[0], kTileStride);
  _tile_stored(1, sums[1], kTileStride);
  _tile_stored(2, sums[2], kTileStride);
  _tile_stored(3, sums[3], kTileStride);
  backend::cpu::kInt8Amx.leave();
  std::uint64_t total = 0;
  for (const auto& tile : sums) {
    for (const std::uint32_t sum : tile) total += sum;
  }
  return total;
}

}  // namespace

const RegisterPeak kAmxPeak{"amx", std::uint64_t{4} * 16 * 16 * 64, &Run};

}  // namespace simile::bench
