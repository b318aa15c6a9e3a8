// Compiled with -mavx512f -mavx512vnni.
#include <immintrin.h>

#include "bench/register_peak.h"

namespace simile::bench {
namespace {

constexpr std::uint64_t kSums = 12;

// The sums are separate variables because the compiler stores an array on every turn.
std::uint64_t Run(const std::uint8_t* operands, std::size_t turns) {
  const __m512i row0 = _mm512_load_si512(operands);
  const __m512i row1 = _mm512_load_si512(operands + 64);
  const __m512i row2 = _mm512_load_si512(operands + 128);
  const __m512i row3 = _mm512_load_si512(operands + 192);
  const __m512i query0 = _mm512_load_si512(operands + 256);
  const __m512i query1 = _mm512_load_si512(operands + 320);
  const __m512i query2 = _mm512_load_si512(operands + 384);
  __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a, e = a, f = a;
  __m512i g = a, h = a, i = a, j = a, k = a, l = a;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    a = _mm512_dpbusd_epi32(a, row0, query0);
    b = _mm512_dpbusd_epi32(b, row1, query0);
    c = _mm512_dpbusd_epi32(c, row2, query0);
    d = _mm512_dpbusd_epi32(d, row3, query0);
    e = _mm512_dpbusd_epi32(e, row0, query1);
    f = _mm512_dpbusd_epi32(f, row1, query1);
    g = _mm512_dpbusd_epi32(g, row2, query1);
    h = _mm512_dpbusd_epi32(h, row3, query1);
    i = _mm512_dpbusd_epi32(i, row0, query2);
    j = _mm512_dpbusd_epi32(j, row1, query2);
    k = _mm512_dpbusd_epi32(k, row2, query2);
    l = _mm512_dpbusd_epi32(l, row3, query2);
  }
  const __m512i sums[kSums] = {a, b, c, d, e, f, g, h, i, j, k, l};
  std::uint64_t total = 0;
  for (const __m512i& sum : sums) {
    alignas(64) std::uint32_t lanes[16];
    _mm512_store_si512(lanes, sum);
    for (const std::uint32_t lane : lanes) total += lane;
  }
  return total;
}

}  // namespace

const RegisterPeak kAvx512VnniPeak{"avx512vnni", kSums * 64, &Run};

}  // namespace simile::bench
