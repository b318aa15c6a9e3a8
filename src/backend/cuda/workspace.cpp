#include "backend/cuda/workspace.h"

#include <algorithm>
#include <atomic>
#include <cassert>

#include "kernels/row_scan.h"
#include "kernels/score_tile.h"

namespace simile::backend::cuda {
namespace {

constexpr auto kKind = MemoryKind::kWorkspace;

// Checks the sizes that gpu_memory.h assumes for the kernels' types.
static_assert(sizeof(__half) == gpu_sizes::kFp16);
static_assert(sizeof(kernels::QueryTerms) == gpu_sizes::kQueryTerms);
static_assert(sizeof(kernels::Int8Row) == gpu_sizes::kInt8Row);
static_assert(sizeof(kernels::Int8Query) == gpu_sizes::kInt8Query);
static_assert(sizeof(kernels::Proof) == gpu_sizes::kProof);
static_assert(sizeof(kernels::Key) == gpu_sizes::kKey);
static_assert(sizeof(kernels::AnswerHit) == gpu_sizes::kAnswerHit);
static_assert(sizeof(kernels::Hit) == gpu_sizes::kHit);
static_assert(sizeof(kernels::Candidates) == gpu_sizes::kCandidates);
static_assert(sizeof(kernels::GridRounds) == gpu_sizes::kGridRounds);
static_assert(kernels::kScanQueriesMax == gpu_sizes::kScanQueriesMax);
static_assert(kernels::kScanGroupsMax == gpu_sizes::kScanGroupsMax);
static_assert(kernels::kTileGranule == gpu_sizes::kTileGranule);

template <std::size_t count>
std::array<std::shared_ptr<const PinnedBlock>, count> MakeBlocks(Device& device,
                                                                 std::size_t bytes) {
  std::array<std::shared_ptr<const PinnedBlock>, count> blocks;
  for (auto& block : blocks) block = std::make_shared<const PinnedBlock>(device, bytes);
  return blocks;
}

template <std::size_t count>
std::array<Event, count> MakeEvents(Device& device) {
  std::array<Event, count> events;
  for (Event& event : events) event = MakeEvent(device);
  return events;
}

bool IsFree(const std::shared_ptr<const PinnedBlock>& block) {
  if (block.use_count() > 1) return false;
  // Orders the last reader's reads before the next write.
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
}

}  // namespace

BlasHandle::BlasHandle(Device& device, cudaStream_t stream, std::size_t bytes)
    : device_(device), memory_(device, bytes, kKind) {
  constexpr auto kMath =
      static_cast<cublasMath_t>(static_cast<int>(CUBLAS_DEFAULT_MATH) |
                                static_cast<int>(CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
  const BlasLibrary& blas = device.blas();
  if (!blas.loaded()) return;
  device.Check(blas.create(&handle_), "cublasCreate");
  // The destructor does not run when the constructor throws.
  try {
    device.Check(blas.set_math_mode(handle_, kMath), "cublasSetMathMode");
    device.Check(blas.set_stream(handle_, stream), "cublasSetStream");
    device.Check(blas.set_workspace(handle_, memory_.get(), bytes), "cublasSetWorkspace");
  } catch (...) {
    if (!device.lost()) blas.destroy(handle_);
    throw;
  }
}

BlasHandle::~BlasHandle() {
  if (handle_ != nullptr && !device_.lost()) device_.blas().destroy(handle_);
}

Workspace::Workspace(Device& device, const WorkspaceSize& size, std::uint64_t number)
    : size_(size),
      number_(number),
      streams_{MakeStream(device), MakeStream(device)},
      forked_(MakeEvent(device)),
      gated_(MakeEvent(device)),
      joined_(MakeEvent(device)),
      began_(MakeTimingEvent(device)),
      ended_(MakeTimingEvent(device)),
      blas_{BlasHandle(device, streams_[0].get(), size.blas_bytes),
            BlasHandle(device, streams_[1].get(), size.blas_bytes)},
      host_queries_(MakeBlocks<kHostQueryBlocks>(
          device, LayQueries(size.queries_max, size.stride_max).bytes)),
      host_answers_(MakeBlocks<kHostAnswerBlocks>(device, AnswerBytesMax(size))),
      answered_events_(MakeEvents<kHostQueryBlocks>(device)),
      queries_(device, LayQueries(size.queries_max, size.stride_max).bytes, kKind),
      answers_(device, AnswerBytesMax(size), kKind),
      fp16_queries_(device, std::size_t{size.queries_max} * size.stride_max, kKind),
      tiles_{DeviceArray<__half>(device, size.tile_bytes / sizeof(__half), kKind),
             DeviceArray<__half>(device, size.tile_bytes / sizeof(__half), kKind)},
      hits_(device, size.hits_max, kKind),
      keys_(device, size.hits_max, kKind),
      candidates_(device, size.queries_max, kKind),
      kept_rows_(device, size.hits_max, kKind),
      gates_(device, size.queries_max, kKind),
      hit_counts_(device, size.queries_max, kKind),
      thresholds_(device, size.queries_max, kKind),
      int8_queries_(device, ScanQueryCount(size), kKind),
      maxima_(device, MaximaCount(size), kKind),
      rounds_(device, 1, kKind),
      excluded_(device, size.excluded_max, kKind) {
  device.Check(cudaMemsetAsync(rounds_.get(), 0, sizeof(kernels::GridRounds), streams_[0].get()),
               "cudaMemsetAsync");
  device.AwaitOrLose(streams_[0].get());
}

HeldBlock Workspace::HoldAnswersToLend() const {
  for (unsigned index = 1; index < kHostAnswerBlocks; ++index) {
    if (IsFree(host_answers_[index])) return {index, host_answers_[index]};
  }
  return {0, host_answers_.front()};
}

unsigned Workspace::free_query_blocks() const {
  return static_cast<unsigned>(std::ranges::count_if(host_queries_, IsFree));
}

unsigned Workspace::free_answer_blocks() const {
  return static_cast<unsigned>(
      std::count_if(host_answers_.begin() + 1, host_answers_.end(), IsFree));
}

HeldBlock Workspace::HoldQueries() const {
  const auto found = std::ranges::find_if(host_queries_, IsFree);
  assert(found != host_queries_.end());
  return {static_cast<unsigned>(found - host_queries_.begin()), *found};
}

kernels::Pass Workspace::PassFor(unsigned slots, unsigned stride, unsigned capacity,
                                 unsigned best_stride) const {
  const QueryBlock in = LayQueries(slots, stride);
  const AnswerBlock out = LayAnswers(slots, best_stride);
  kernels::Pass pass{};
  pass.stride = stride;
  pass.terms = reinterpret_cast<const kernels::QueryTerms*>(queries_.get() + in.terms_at);
  pass.queries = reinterpret_cast<const float*>(queries_.get() + in.vectors_at);
  pass.batch = slots;
  pass.gates = gates_.get();
  pass.hits = hits_.get();
  pass.hit_counts = hit_counts_.get();
  pass.capacity = capacity;
  pass.candidates = candidates_.get();
  pass.kept_rows = kept_rows_.get();
  pass.keys = keys_.get();
  pass.proofs = reinterpret_cast<kernels::Proof*>(answers_.get() + out.proofs_at);
  pass.best = reinterpret_cast<kernels::AnswerHit*>(answers_.get() + out.best_at);
  pass.best_stride = best_stride;
  return pass;
}

}  // namespace simile::backend::cuda
