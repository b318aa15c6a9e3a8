#include "cli/plan/this_machine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <new>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "backend/cpu/thread_pool.h"
#include "backend/gpu_search.h"
#include "backend/nvml.h"
#include "base/memory_pages.h"
#include "certificate/rotation.h"
#include "data/matrix.h"
#include "doctor/self_check.h"
#include "simile/hits.h"

namespace simile::cli {
namespace {

absl::StatusOr<FoundCard> ReadCard(int number, const std::string& library) {
  const auto nvml = backend::Nvml::Open(library);
  if (!nvml.ok()) return nvml.status();
  const auto reading = (*nvml)->Read(static_cast<unsigned>(number));
  if (!reading.ok()) return reading.status();
  if (!reading->memory_total_bytes) {
    return absl::NotFoundError(
        fmt::format("{} does not say how much memory it has", reading->name));
  }
  return FoundCard{reading->name,
                   fmt::format("card {} in the order of the bus, at {}; there is no GPU plug-in",
                               number, reading->bus_id),
                   *reading->memory_total_bytes};
}

// The sizes of memory to read, from a size that every cache holds to a size that no cache holds.
constexpr std::size_t kReadBytesMin = std::size_t{32} << 10;
constexpr std::size_t kReadBytesMax = std::size_t{256} << 20;
constexpr std::size_t kBytesTogether = 512;  // bytes that one step of ReadLines reads
constexpr std::size_t kQueries = 256;
constexpr std::chrono::milliseconds kReadTime{30};  // for each size
constexpr std::chrono::milliseconds kBatchTime{200};

// Reads one word of each cache line, because caches move whole lines. Adds into eight sums, so that
// no addition waits for the previous one.
std::uint64_t ReadLines(const std::byte* begin, std::size_t size) {
  std::uint64_t sums[8] = {};
  for (std::size_t at = 0; at < size; at += kBytesTogether) {
    for (std::size_t i = 0; i < 8; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, begin + at + i * kBytesTogether / 8, sizeof(word));
      sums[i] += word;
    }
  }
  return std::accumulate(std::begin(sums), std::end(sums), std::uint64_t{0});
}

// Runs `work` until the time is over, at least twice. Returns the best rate, in units that `work`
// returns, per second.
template <class Work>
double BestRate(Clock::Duration time, const Clock& clock, Work work) {
  double best = 0;
  const Clock::TimePoint begin = clock.Now();
  for (int run = 0; run < 2 || clock.Now() - begin < time; ++run) {
    const Clock::TimePoint start = clock.Now();
    const double done = work();
    best = std::max(best, done / std::chrono::duration<double>(clock.Now() - start).count());
  }
  return best;
}

// Memory to read. Each thread reads its own part, because each has its own caches.
class ReadBuffer {
 public:
  explicit ReadBuffer(unsigned threads)
      : pool_(threads),
        memory_(kReadBytesMax),
        part_bytes_(kReadBytesMax / pool_.thread_count() / kBytesTogether * kBytesTogether) {
    // All threads fill it, so that the system spreads the pages over its memory nodes.
    constexpr std::size_t kTogether = std::size_t{1} << 20;
    std::atomic<std::size_t> next{0};
    auto fill = [&](unsigned) {
      backend::cpu::ClaimParts(next, kReadBytesMax, kTogether,
                               [&](std::size_t at, std::size_t end) {
                                 std::memset(memory_.As<std::byte>() + at, 1, end - at);
                               });
    };
    pool_.Run(fill);
  }

  // The rate, in bytes per second, at which all threads together read `bytes` bytes repeatedly.
  double Measure(std::size_t bytes, const Clock& clock) {
    const std::size_t each = std::min(
        part_bytes_,
        std::max(bytes / pool_.thread_count() / kBytesTogether, std::size_t{1}) * kBytesTogether);
    // Repeats so often that the time to wake the threads is negligible.
    const std::size_t times = std::max<std::size_t>(1, kReadBytesMax / 4 / bytes);
    std::atomic<std::size_t> read_bytes{0};  // a thread that wakes too late reads nothing
    auto read = [&](unsigned thread) {
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < times; ++i) {
        sum += ReadLines(memory_.As<const std::byte>() + thread * part_bytes_, each);
        // Without the fence the compiler could read the memory only once.
        std::atomic_signal_fence(std::memory_order_seq_cst);
      }
      sum_.fetch_add(sum, std::memory_order_relaxed);
      read_bytes.fetch_add(each * times, std::memory_order_relaxed);
    };
    return BestRate(kReadTime, clock, [&] {
      read_bytes = 0;
      pool_.Run(read);
      return static_cast<double>(read_bytes);
    });
  }

 private:
  backend::cpu::ThreadPool pool_;
  const base::PageBuffer memory_;
  const std::size_t part_bytes_;
  std::atomic<std::uint64_t> sum_{0};
};

void MeasureReading(unsigned threads, const Clock& clock, SpeedLimits& speed) {
  ReadBuffer buffer(threads);
  for (std::size_t bytes = kReadBytesMax; bytes >= kReadBytesMin; bytes /= 2) {
    const double rate = buffer.Measure(bytes, clock);
    // A smaller size cannot be slower to read; a lower rate means that something disturbed it.
    const double larger = speed.cached.empty() ? 0 : speed.cached.back().bytes_per_s;
    speed.cached.push_back({bytes, std::max(rate, larger)});
  }
  std::ranges::reverse(speed.cached);
  speed.bytes_per_s = speed.cached.back().bytes_per_s;
}

// The seconds of the fastest answer to a batch of queries over these rows.
absl::StatusOr<double> TimeBatch(const backend::cpu::Int8Options& options, MatrixView rows,
                                 MatrixView queries, const Clock& clock) {
  const auto engine = backend::cpu::MakeInt8Backend(options);
  const auto index = engine->MakeResident({rows, nullptr, Metric::kCosine, 0});
  if (!index.ok()) return index.status();
  QuerySpec spec;
  spec.k = 10;
  // No random row reaches this score, so only the products of the first stage are measured.
  spec.score_threshold = 0.99F;
  const std::vector<QuerySpec> specs(queries.row_count(), spec);
  SearchResult result;
  absl::Status status;
  const double rate = BestRate(kBatchTime, clock, [&] {
    status.Update((*index)->Search({queries, specs}, result));
    return 1;
  });
  if (!status.ok()) return status;
  return 1 / rate;
}

// Multiply-adds per second. Takes the difference between many rows and a quarter of them, so that
// the fixed cost of a query does not count.
absl::StatusOr<double> MeasureProducts(backend::cpu::Int8Options options, std::size_t dim,
                                       const Clock& clock) {
  constexpr std::size_t kNumbers = std::size_t{16} << 20;
  constexpr std::size_t kRowsMin = 4'096, kRowsMax = 40'960;
  const std::size_t rotated = certificate::RotatedDim(dim);
  const std::size_t count = std::clamp(kNumbers / rotated, kRowsMin, kRowsMax);
  const absl::StatusOr<data::Matrix> rows = doctor::RandomVectors(count, dim, 1);
  if (!rows.ok()) return rows.status();
  const absl::StatusOr<data::Matrix> queries = doctor::RandomVectors(kQueries, dim, 2);
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

absl::StatusOr<FoundCard> FindCard(int number, const backend::GpuSearch& search,
                                   const std::string& nvml) {
  if (absl::Status driver = backend::LoadDriver(search.driver_library, search.kind); !driver.ok()) {
    return driver;
  }
  const auto plugin = backend::FindGpuPlugin(search);
  if (!plugin.ok()) return ReadCard(number, nvml);
  const auto found = backend::FindDevice(*plugin->plugin, number, search.kind);
  if (!found.ok()) return found.status();
  return FoundCard{found->device.name, fmt::format("gpu.device {}", number),
                   found->device.memory_bytes};
}

absl::StatusOr<SpeedLimits> MeasureHostSpeed(const backend::cpu::Int8Options& options,
                                             std::size_t dim, const Clock& clock) {
  try {
    SpeedLimits speed;
    MeasureReading(options.threads, clock, speed);
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
