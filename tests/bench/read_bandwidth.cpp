#include "bench/read_bandwidth.h"

#include <atomic>
#include <cstring>

#include <fmt/format.h>

#include "bench/timing.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace simile::bench {
namespace {

std::uint64_t ReadPortable(const std::byte* begin, std::size_t size) {
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i < size; i += sizeof(sums)) {
    std::uint64_t words[8];
    std::memcpy(words, begin + i, sizeof(words));
    for (std::size_t j = 0; j < 8; ++j) sums[j] += words[j];
  }
  std::uint64_t total = 0;
  for (const std::uint64_t sum : sums) total += sum;
  return total;
}

#if defined(__x86_64__)
// 128 bytes of each stream in each turn: two cache lines, as the scan reads.
constexpr std::size_t kTurnBytes = 128;

template <std::size_t kStreams, std::size_t kPrefetch>
__attribute__((target("avx2"))) std::uint64_t ReadAvx2(const std::byte* begin, std::size_t size) {
  const std::size_t share = size / kStreams / kTurnBytes * kTurnBytes;
  __m256i sums[4] = {};
  for (std::size_t i = 0; i < share; i += kTurnBytes) {
    for (std::size_t stream = 0; stream < kStreams; ++stream) {
      const std::byte* at = begin + stream * share + i;
      if (kPrefetch > 0) {
        _mm_prefetch(reinterpret_cast<const char*>(at) + kPrefetch, _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(at) + kPrefetch + 64, _MM_HINT_T0);
      }
      for (std::size_t j = 0; j < 4; ++j) {
        const auto* from = reinterpret_cast<const __m256i*>(at + j * sizeof(__m256i));
        sums[j] = _mm256_add_epi64(sums[j], _mm256_loadu_si256(from));
      }
    }
  }
  const __m256i sum =
      _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
  std::uint64_t words[4];
  std::memcpy(words, &sum, sizeof(words));
  return words[0] + words[1] + words[2] + words[3];
}

template <std::size_t kStreams, std::size_t kPrefetch>
__attribute__((target("avx512f"))) std::uint64_t ReadAvx512(const std::byte* begin,
                                                            std::size_t size) {
  const std::size_t share = size / kStreams / kTurnBytes * kTurnBytes;
  __m512i sums[2] = {};
  for (std::size_t i = 0; i < share; i += kTurnBytes) {
    for (std::size_t stream = 0; stream < kStreams; ++stream) {
      const std::byte* at = begin + stream * share + i;
      if (kPrefetch > 0) {
        _mm_prefetch(reinterpret_cast<const char*>(at) + kPrefetch, _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(at) + kPrefetch + 64, _MM_HINT_T0);
      }
      for (std::size_t j = 0; j < 2; ++j) {
        sums[j] = _mm512_add_epi64(sums[j], _mm512_loadu_si512(at + j * sizeof(__m512i)));
      }
    }
  }
  const __m512i sum = _mm512_add_epi64(sums[0], sums[1]);
  std::uint64_t words[8];
  std::memcpy(words, &sum, sizeof(words));
  return words[0] + words[1] + words[2] + words[3] + words[4] + words[5] + words[6] + words[7];
}

template <std::size_t kStreams, std::size_t kPrefetch>
void AddWide(std::vector<ReadPattern>& patterns) {
  std::string shape = fmt::format("{} stream{}", kStreams, kStreams == 1 ? "" : "s");
  if (kPrefetch > 0) shape += fmt::format(", prefetch {}", kPrefetch);
  if (__builtin_cpu_supports("avx512f") != 0) {
    patterns.push_back({"avx512, " + shape, &ReadAvx512<kStreams, kPrefetch>});
  }
  if (__builtin_cpu_supports("avx2") != 0) {
    patterns.push_back({"avx2, " + shape, &ReadAvx2<kStreams, kPrefetch>});
  }
}

template <std::size_t kStreams>
void AddPrefetches(std::vector<ReadPattern>& patterns) {
  AddWide<kStreams, 0>(patterns);
  AddWide<kStreams, 512>(patterns);
  AddWide<kStreams, 2048>(patterns);
  AddWide<kStreams, 4096>(patterns);
}
#endif

}  // namespace

std::vector<ReadPattern> ReadPatterns() {
  std::vector<ReadPattern> patterns{{"portable, 1 stream", &ReadPortable}};
#if defined(__x86_64__)
  AddPrefetches<1>(patterns);
  AddPrefetches<2>(patterns);
  AddPrefetches<3>(patterns);
  AddPrefetches<4>(patterns);
#endif
  return patterns;
}

std::chrono::duration<double> TimeRead(const ReadPattern& pattern,
                                       std::span<const std::byte> memory,
                                       backend::cpu::ThreadPool& pool) {
  const unsigned threads = pool.thread_count();
  const std::size_t share = memory.size() / threads / kReadMultiple * kReadMultiple;
  std::atomic<std::uint64_t> sum{0};
  // The remainder after the shares (under a KiB a thread) counts as read, which favours the
  // bandwidth and not the scan that is compared with it.
  return TimeTogether(pool, [&](unsigned participant) {
    sum += pattern.read(memory.data() + participant * share, share);
  });
}

}  // namespace simile::bench
