#include "cli/plan/host_speed.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "backend/cpu/thread_pool.h"
#include "base/page_buffer.h"
#include "base/split_mix.h"
#include "certificate/rotation.h"
#include "data/matrix.h"
#include "simile/hits.h"

namespace simile::cli {
namespace {

using backend::cpu::ThreadPool;

constexpr std::size_t kReadBytes = std::size_t{256} << 20;
constexpr std::size_t kPartBytes = std::size_t{1} << 20;
constexpr std::size_t kQueries = 256;
constexpr std::chrono::milliseconds kTime{200};

// Eight sums, so that no addition waits for the one before.
std::uint64_t SumOf(const std::byte* begin, std::size_t size) {
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

// Runs it until the time is over, at least twice, and returns the seconds of the fastest run.
template <class Work>
double FastestOf(const Clock& clock, Work work) {
  double best = INFINITY;
  const Clock::TimePoint begin = clock.Now();
  for (int run = 0; run < 2 || clock.Now() - begin < kTime; ++run) {
    const Clock::TimePoint start = clock.Now();
    work();
    best = std::min(best, std::chrono::duration<double>(clock.Now() - start).count());
  }
  return best;
}

double MeasureReading(unsigned threads, const Clock& clock) {
  const base::PageBuffer memory(kReadBytes);
  ThreadPool pool(threads);
  std::atomic<std::uint64_t> total{0};
  const auto visit = [&](auto work) {
    std::atomic<std::size_t> next{0};
    auto job = [&](unsigned) {
      backend::cpu::ClaimParts(next, kReadBytes / kPartBytes, 1,
                               [&](std::size_t part, std::size_t) { work(part * kPartBytes); });
    };
    pool.Run(job);
  };
  visit([&](std::size_t at) { std::memset(memory.As<std::byte>() + at, 1, kPartBytes); });
  const double seconds = FastestOf(clock, [&] {
    visit([&](std::size_t at) {
      total.fetch_add(SumOf(memory.As<const std::byte>() + at, kPartBytes),
                      std::memory_order_relaxed);
    });
  });
  return static_cast<double>(kReadBytes) / seconds;
}

// Vectors of random directions, unit length.
absl::StatusOr<data::Matrix> RandomRows(std::size_t count, std::size_t dim, std::uint64_t seed) {
  absl::StatusOr<data::Matrix> rows = data::Matrix::Create(count, dim);
  if (!rows.ok()) return rows;
  for (std::size_t row = 0; row < count; ++row) {
    float* const values = rows->MutableRow(row);
    double square = 0;
    for (std::size_t i = 0; i < dim; ++i) {
      const std::uint64_t bits = base::SplitMix((seed + row * dim + i + 1) * base::kSplitMixStep);
      values[i] = static_cast<float>(bits >> 40) * 0x1p-23F - 1;
      square += double{values[i]} * double{values[i]};
    }
    const auto scale = static_cast<float>(1 / std::sqrt(square));
    for (std::size_t i = 0; i < dim; ++i) values[i] *= scale;
  }
  return rows;
}

// The seconds of the fastest answer to a batch over so many of the rows.
absl::StatusOr<double> TimeBatch(const backend::cpu::Int8Options& options, MatrixView rows,
                                 MatrixView queries, const Clock& clock) {
  const auto engine = backend::cpu::MakeInt8Backend(options);
  const auto index = engine->MakeResident({rows, nullptr, Metric::kCosine, 0});
  if (!index.ok()) return index.status();
  QuerySpec spec;
  spec.k = 10;
  // No random row comes near, so nothing but the first stage's products is measured.
  spec.score_threshold = 0.99F;
  const std::vector<QuerySpec> specs(queries.row_count(), spec);
  SearchResult result;
  absl::Status status;
  const double seconds = FastestOf(clock, [&] {
    status.Update((*index)->Search({queries, specs}, result));
  });
  if (!status.ok()) return status;
  return seconds;
}

// The difference between many rows and a quarter of them, so that what each query costs by itself
// does not count.
absl::StatusOr<double> MeasureProducts(backend::cpu::Int8Options options, std::size_t dim,
                                       const Clock& clock) {
  constexpr std::size_t kNumbers = std::size_t{16} << 20;
  constexpr std::size_t kRowsMin = 4'096, kRowsMax = 40'960;
  const std::size_t rotated = certificate::RotatedDim(dim);
  const std::size_t count = std::clamp(kNumbers / rotated, kRowsMin, kRowsMax);
  const absl::StatusOr<data::Matrix> rows = RandomRows(count, dim, 1);
  if (!rows.ok()) return rows.status();
  const absl::StatusOr<data::Matrix> queries = RandomRows(kQueries, dim, 1ULL << 40);
  if (!queries.ok()) return queries.status();
  options.tuning.scan_rows_max = 0;
  options.foreground_bytes_max = SIZE_MAX;
  const std::size_t few = count / 4;
  const auto less = TimeBatch(options, rows->view().Slice(0, few), queries->view(), clock);
  if (!less.ok()) return less.status();
  const auto more = TimeBatch(options, rows->view(), queries->view(), clock);
  if (!more.ok()) return more.status();
  const auto products = static_cast<double>((count - few) * kQueries * rotated);
  return products / std::max(*more - *less, *more / 4);
}

}  // namespace

absl::StatusOr<HostSpeed> MeasureHostSpeed(const backend::cpu::Int8Options& options,
                                           std::size_t dim, const Clock& clock) {
  try {
    HostSpeed speed;
    speed.bytes_per_s = MeasureReading(options.threads, clock);
    const absl::StatusOr<double> products = MeasureProducts(options, dim, clock);
    if (!products.ok()) return products.status();
    speed.products_per_s = *products;
    return speed;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "no memory to measure this machine with; give --host-bandwidth");
  }
}

}  // namespace simile::cli
