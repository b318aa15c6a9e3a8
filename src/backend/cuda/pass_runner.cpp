#include "backend/cuda/pass_runner.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <utility>

#include "backend/cuda/profiler_range.h"
#include "certificate/device_bounds.h"
#include "kernels/answers.h"
#include "kernels/convert.h"
#include "kernels/pass_inputs.h"
#include "kernels/score_tile.h"

namespace simile::backend::cuda {
namespace {

using certificate::CheapStorage;
using kernels::Key;
using kernels::Pass;

// A canonical scan runs in steps. Each step has the k-th best score so far as its threshold; the
// first step has none. A step of kStepGrowth times the rows before it appends about kStepGrowth * k
// keys.
constexpr unsigned kFirstStep = 4'096;
constexpr unsigned kStepGrowth = 4;

// Bytes of fp32 rows that are read between two waits, so that long work is not taken for a hang.
// Estimated from the slowest buses: 20 ms at 200 GB/s of device memory, 50 ms at 5 GB/s of PCIe.
constexpr std::size_t kBytesOfWait = std::size_t{4} << 30;
constexpr std::size_t kBytesOfWaitFromHost = std::size_t{256} << 20;

static_assert(sizeof(kernels::AnswerHit) == sizeof(Hit) &&
              offsetof(kernels::AnswerHit, row) == offsetof(Hit, row) &&
              offsetof(kernels::AnswerHit, score) == offsetof(Hit, score));

}  // namespace

void PassRunner::UploadExcluded(std::span<const unsigned> rows) {
  if (rows.empty()) return;
  const ProfilerRange range("copy in");
  device_.Check(cudaMemcpyAsync(workspace_.excluded(), rows.data(), rows.size_bytes(),
                                cudaMemcpyHostToDevice, workspace_.stream(0)),
                "cudaMemcpyAsync");
}

bool PassRunner::UploadExcludedOfNext(std::span<const unsigned> rows) {
  const std::size_t used = LayQueries(next_.plan.slots, rows_.size().stride).bytes;
  const WorkspaceSize& size = workspace_.size();
  if (used + rows.size_bytes() > LayQueries(size.queries_max, size.stride_max).bytes) return false;
  if (rows.empty()) return true;
  const ProfilerRange range("copy in");
  std::byte* const pinned = next_.queries.block->get() + used;
  std::memcpy(pinned, rows.data(), rows.size_bytes());
  device_.Check(cudaMemcpyAsync(workspace_.excluded(), pinned, rows.size_bytes(),
                                cudaMemcpyHostToDevice, workspace_.stream(0)),
                "cudaMemcpyAsync");
  return true;
}

void PassRunner::Fill(const PassPlan& plan, const SearchBatch& batch,
                      std::span<const DeviceQuery> queries) {
  assert(queries.size() <= plan.slots);
  const ProfilerRange range("fill");
  answered_ = {};
  HeldBlock of_queries = workspace_.HoldQueries();
  HeldBlock of_answers = plan.lends_answers ? workspace_.HoldAnswersToLend()
                                            : HeldBlock{0, workspace_.host_answers(0)};
  PassGraph& graph = rows_.FindOrAddGraph(plan, of_queries.index, of_answers.index);
  next_ = {plan, std::move(of_queries), std::move(of_answers), &graph};
  FillQueries(batch, queries, plan.slots, next_);
}

void PassRunner::Start(bool marks_end) {
  const ProfilerRange range("start");
  answered_ = {};
  running_ = std::exchange(next_, {});
  running_.marks_end = marks_end;
  Launch();
  if (!marks_end) return;
  device_.Check(
      cudaEventRecord(workspace_.answered_event(running_.queries.index), workspace_.stream(0)),
      "cudaEventRecord");
}

void PassRunner::Launch() {
  const PassPlan& plan = running_.plan;
  PassGraph& graph = *std::exchange(running_.graph, nullptr);
  if (plan.is_mapped) {
    auto* proofs = RunningProofs();
    for (unsigned i = 0; i < plan.slots; ++i) proofs[i].flag = kernels::kPending;
  }
  if (graph.workspace_number != workspace_.number()) {
    // The first run is not captured, because many shapes never occur again, and because CUDA may
    // load code lazily, which a capture does not allow.
    graph.exec = GraphExec();
    graph.timed_exec = GraphExec();
    if (IsScan(plan.strategy())) {
      device_.Check(plan.variant->prepare(plan.shape, device_.traits().shared_bytes_max),
                    "cudaFuncSetAttribute");
    }
    EnqueueTimed(cudaEventRecordDefault, [&] { Enqueue(running_); });
    graph.workspace_number = workspace_.number();
    return;
  }
  // The events are inside the graph, because the host's part of a launch is not the device's time.
  GraphExec& exec = device_time_ != nullptr ? graph.timed_exec : graph.exec;
  if (exec.get() == nullptr) {
    exec = Capture(device_, workspace_.stream(0),
                   [&] { EnqueueTimed(cudaEventRecordExternal, [&] { Enqueue(running_); }); });
  }
  device_.Check(cudaGraphLaunch(exec.get(), workspace_.stream(0)), "cudaGraphLaunch");
}

template <class Work>
void PassRunner::EnqueueTimed(unsigned flags, Work work) {
  if (device_time_ == nullptr) return work();
  const auto record = [&](cudaEvent_t event) {
    device_.Check(cudaEventRecordWithFlags(event, workspace_.stream(0), flags),
                  "cudaEventRecordWithFlags");
  };
  record(workspace_.began());
  work();
  record(workspace_.ended());
}

void PassRunner::AddDeviceTime() {
  if (device_time_ == nullptr) return;
  float milliseconds = 0;
  device_.Check(cudaEventElapsedTime(&milliseconds, workspace_.began(), workspace_.ended()),
                "cudaEventElapsedTime");
  device_time_->Add(1e3 * static_cast<double>(milliseconds));
}

bool PassRunner::HasEnded() const {
  const cudaError_t state = cudaEventQuery(workspace_.answered_event(running_.queries.index));
  if (state != cudaErrorNotReady) device_.Check(state, "cudaEventQuery");
  return state == cudaSuccess;
}

void PassRunner::Await() {
  const ProfilerRange range("await");
  const PassPlan& plan = running_.plan;
  cudaStream_t stream = workspace_.stream(0);
  // The event after the pass is later than the answers.
  if (running_.marks_end) {
    device_.Await(workspace_.answered_event(running_.queries.index));
  } else if (plan.is_mapped && device_time_ == nullptr) {
    device_.AwaitAnswers(stream, [&] { return AllAnswered(); });
  } else {
    device_.Await(stream);
  }
  AddDeviceTime();
  answer_slots_ = plan.slots;
  answer_stride_ = plan.best_stride;
  answered_ = std::exchange(running_, {});
}

// Reads memory that the device writes meanwhile. The device writes the flag of a proof last, after
// the rest of the answer.
bool PassRunner::AllAnswered() const {
  auto* proofs = RunningProofs();
  return std::all_of(proofs, proofs + running_.plan.slots, [](kernels::Proof& proof) {
    return std::atomic_ref(proof.flag).load(std::memory_order_acquire) != kernels::kPending;
  });
}

kernels::Proof* PassRunner::RunningProofs() const {
  return reinterpret_cast<kernels::Proof*>(running_.answers.block->get());
}

// Writes the terms in place, because a copy would wait for each field.
//   unit  a power of two that scales the query to at most unit length
void PassRunner::WriteTerms(const DeviceQuery& query, float threshold, double unit,
                            const GateRanks& ranks, kernels::QueryTerms& terms) const {
  const bool is_list = query.filter != nullptr && query.filter->is_list;
  const unsigned* const on_device = query.filter != nullptr ? query.filter->on_device : nullptr;
  terms.mask = is_list ? nullptr : on_device;
  terms.list = is_list ? on_device : nullptr;
  terms.list_count = is_list ? query.filter->passing : 0;
  terms.excluded = workspace_.excluded() + query.first_excluded;
  terms.excluded_count = query.excluded_count;
  terms.wanted = query.wanted;
  terms.reached = query.reached;
  terms.rank = ranks.first;
  // A gate that is known to be reached needs no second gate.
  terms.second_rank = query.reached > kernels::kLowestScore ? 0 : ranks.second;
  terms.unit_of_query = static_cast<float>(unit);
  terms.score_of_unit = static_cast<float>(1 / (unit * rows_.unit()));
  terms.threshold = threshold;
}

GateRanks PassRunner::FindRanks(const FilledPass& filled, unsigned reach) {
  std::vector<GateRanks>& ranks = filled.graph->ranks;
  if (reach >= ranks.size()) ranks.resize(reach + 1);
  if (ranks[reach].first == 0) ranks[reach] = filled.plan.FindRanks(reach);
  return ranks[reach];
}

// Fills slots after the last query with zeros: queries that want no hits.
void PassRunner::FillQueries(const SearchBatch& batch, std::span<const DeviceQuery> queries,
                             std::size_t slots, const FilledPass& filled) const {
  const std::size_t stride = rows_.size().stride;
  const QueryBlock block = LayQueries(slots, stride);
  std::byte* const host = filled.queries.block->get();
  auto* terms = reinterpret_cast<kernels::QueryTerms*>(host + block.terms_at);
  auto* vectors = reinterpret_cast<float*>(host + block.vectors_at);
  unsigned reach = 0;
  GateRanks ranks;  // of the current reach
  for (std::size_t i = 0; i < queries.size(); ++i) {
    if (filled.graph != nullptr && queries[i].reach() != reach) {
      reach = queries[i].reach();
      ranks = FindRanks(filled, reach);
    }
    const std::uint32_t index = queries[i].index;
    const float squares =
        certificate::CopyAndSquare(batch.queries.PaddedRow(index), stride, vectors + i * stride);
    const double unit = certificate::UnitIsOne(squares, stride)
                            ? 1
                            : certificate::ChooseUnit(certificate::Length(batch.queries[index]));
    WriteTerms(queries[i], batch.specs[index].score_threshold, unit, ranks, terms[i]);
  }
  std::fill(terms + queries.size(), terms + slots, kernels::QueryTerms{});
  std::fill(vectors + queries.size() * stride, vectors + slots * stride, 0.0F);
}

Pass PassRunner::PassOver(unsigned slots, unsigned capacity, unsigned best_stride) const {
  Pass pass = workspace_.PassFor(slots, rows_.size().stride, capacity, best_stride);
  pass.rows = rows_.rows();
  pass.row_of = rows_.row_of();
  pass.first_row = rows_.first_row();
  pass.row_count = rows_.size().row_count;
  return pass;
}

Pass PassRunner::MakePass(const PassPlan& plan) const {
  Pass pass = PassOver(plan.slots, plan.capacity, plan.best_stride);
  switch (plan.strategy()) {
    case PassStrategy::kInt8Scan:  // its hits already include their bounds
      pass.hits_are_upper_bounds = true;
      break;
    case PassStrategy::kRowScan:
      pass.bound = rows_.bound(CheapStorage::kFloat);
      break;
    case PassStrategy::kGemm:
      pass.bound = rows_.bound(CheapStorage::kHalf);
      break;
  }
  return pass;
}

// Enqueues all work from the query block on the host to the answer block on the host.
void PassRunner::Enqueue(const FilledPass& filled) {
  const PassPlan& plan = filled.plan;
  const std::size_t query_bytes = LayQueries(plan.slots, rows_.size().stride).bytes;
  if (!plan.is_mapped) {
    CopyIn(*filled.queries.block, query_bytes);
    EnqueuePass(plan);
    return CopyOut(*filled.answers.block, LayAnswers(plan.slots, plan.best_stride).bytes);
  }
  Pass pass = MakePass(plan);
  const AnswerBlock out = LayAnswers(plan.slots, plan.best_stride);
  std::byte* const answers = filled.answers.block->mapped;
  pass.proofs = reinterpret_cast<kernels::Proof*>(answers + out.proofs_at);
  pass.best = reinterpret_cast<kernels::AnswerHit*>(answers + out.best_at);
  pass.host_polls = true;
  const kernels::TakeQueriesArguments queries{filled.queries.block->mapped, workspace_.queries(),
                                              query_bytes};
  {
    const ProfilerRange range("copy in");
    device_.Check(kernels::LaunchTakeQueries(queries, workspace_.stream(0)), "take_queries");
  }
  EnqueueScan(plan, pass);
}

void PassRunner::EnqueuePass(const PassPlan& plan) {
  const Pass pass = MakePass(plan);
  if (IsScan(plan.strategy())) {
    EnqueueScan(plan, pass);
  } else {
    EnqueueGemm(plan, pass);
  }
}

void PassRunner::EnqueueScan(const PassPlan& plan, const Pass& pass) {
  {
    const ProfilerRange range("scan");
    device_.Check(plan.variant->launch(plan.shape, device_.traits().multiprocessors, pass,
                                       ScanArguments(plan, pass), workspace_.stream(0)),
                  plan.variant->name.data());
  }
  EnqueueFinish(plan, pass);
}

kernels::RowScanArguments PassRunner::ScanArguments(const PassPlan& plan, const Pass& pass) const {
  kernels::RowScanArguments arguments{.fp16_rows = rows_.fp16_rows(),
                                      .sample_groups = plan.sample_groups,
                                      .margin = 2 * pass.bound,
                                      .maxima = workspace_.maxima(),
                                      .second_tiles = plan.second_tiles,
                                      .second_maxima = workspace_.second_maxima(),
                                      .rounds = workspace_.rounds()};
  if (plan.strategy() == PassStrategy::kInt8Scan) {
    arguments.int8 = rows_.int8();
    arguments.int8.planes = workspace_.int8_planes();
    arguments.int8.queries = workspace_.int8_queries();
  }
  return arguments;
}

void PassRunner::EnqueueFinish(const PassPlan& plan, const Pass& pass) {
  const ProfilerRange range("finish");
  const cudaStream_t stream = workspace_.stream(0);
  const bool in_row_order = plan.finish == FinishForm::kStepsInRowOrder;
  device_.Check(
      plan.finish == FinishForm::kOneLaunch
          ? kernels::LaunchFinish(pass, stream)
          : kernels::LaunchFinishInSteps(pass, plan.rows_rescored(), in_row_order, stream),
      "finish");
}

void PassRunner::EnqueueGemm(const PassPlan& plan, const Pass& pass) {
  cudaStream_t stream = workspace_.stream(0);
  device_.Check(kernels::LaunchConvertQueriesToFp16(pass, workspace_.fp16_queries(), stream),
                "convert_queries_to_fp16");
  device_.Check(cudaMemsetAsync(pass.hit_counts, 0, plan.slots * sizeof(unsigned), stream),
                "cudaMemsetAsync");
  EnqueueTiles(plan, pass);
  EnqueueFinish(plan, pass);
}

// Tile i runs on stream i mod 2; each stream has its own handle and buffer. So the product of a
// tile uses the multiprocessors that the end of the previous tile leaves idle. The first tile sets
// the gates.
void PassRunner::EnqueueTiles(const PassPlan& plan, const Pass& pass) {
  const ProfilerRange range("tiles");
  const float one = 1, zero = 0;
  const auto stride = static_cast<int>(pass.stride);
  device_.Check(cudaEventRecord(workspace_.forked(), workspace_.stream(0)), "cudaEventRecord");
  device_.Check(cudaStreamWaitEvent(workspace_.stream(1), workspace_.forked(), 0),
                "cudaStreamWaitEvent");
  for (unsigned first = 0, i = 0; first < pass.row_count; first += plan.tile_rows, ++i) {
    const unsigned side = i % 2;
    const kernels::ScoreTile tile{workspace_.tile(side), plan.tile_rows,
                                  std::min(plan.tile_rows, pass.row_count - first), first};
    device_.Check(
        device_.blas().gemm(workspace_.blas(side), CUBLAS_OP_T, CUBLAS_OP_N,
                            static_cast<int>(tile.columns), static_cast<int>(plan.slots), stride,
                            &one, rows_.fp16_rows() + std::size_t{first} * pass.stride, CUDA_R_16F,
                            stride, workspace_.fp16_queries(), CUDA_R_16F, stride, &zero,
                            workspace_.tile(side), CUDA_R_16F, static_cast<int>(plan.tile_rows),
                            CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
    if (i == 0) {
      const kernels::ScoreSample sample{plan.sample_rows, plan.sample_group, 2 * pass.bound};
      device_.Check(kernels::LaunchSampleGate(pass, tile, sample, workspace_.stream(0)),
                    "sample_gate");
      device_.Check(cudaEventRecord(workspace_.gated(), workspace_.stream(0)), "cudaEventRecord");
    } else if (i == 1) {
      device_.Check(cudaStreamWaitEvent(workspace_.stream(1), workspace_.gated(), 0),
                    "cudaStreamWaitEvent");
    }
    device_.Check(kernels::LaunchTopkFp16(pass, tile, workspace_.stream(side)), "topk_fp16");
  }
  device_.Check(cudaEventRecord(workspace_.joined(), workspace_.stream(1)), "cudaEventRecord");
  device_.Check(cudaStreamWaitEvent(workspace_.stream(0), workspace_.joined(), 0),
                "cudaStreamWaitEvent");
}

void PassRunner::CopyIn(const PinnedBlock& queries, std::size_t bytes) {
  const ProfilerRange range("copy in");
  device_.Check(cudaMemcpyAsync(workspace_.queries(), queries.get(), bytes, cudaMemcpyHostToDevice,
                                workspace_.stream(0)),
                "cudaMemcpyAsync");
}

void PassRunner::CopyOut(const PinnedBlock& answers, std::size_t bytes) {
  const ProfilerRange range("copy out");
  device_.Check(cudaMemcpyAsync(answers.get(), workspace_.answers(), bytes, cudaMemcpyDeviceToHost,
                                workspace_.stream(0)),
                "cudaMemcpyAsync");
}

PassRunner::CanonicalSize PassRunner::MeasureQueries(std::span<const DeviceQuery> queries) const {
  CanonicalSize size;
  for (const DeviceQuery& query : queries) {
    const bool is_list = query.filter != nullptr && query.filter->is_list;
    size.places = std::max(size.places, is_list ? query.filter->passing : rows_.size().row_count);
    size.wanted = std::max(size.wanted, query.wanted);
  }
  return size;
}

std::size_t PassRunner::CanonicalSlots(std::span<const DeviceQuery> queries) const {
  const CanonicalSize size = MeasureQueries(queries);
  const WorkspaceSize& limits = workspace_.size();
  const std::size_t least = std::size_t{size.wanted} + std::min(size.places, kFirstStep);
  const std::size_t fit =
      std::min<std::size_t>({queries.size(), limits.queries_max, limits.hits_max / least,
                             limits.answers_max / size.wanted, RowsOfWait() / kFirstStep});
  return std::max<std::size_t>(fit, 1);
}

// Rows that may be read between two waits, counted once per query that reads them.
std::size_t PassRunner::RowsOfWait() const {
  const std::size_t bytes = rows_.rows_on_device() ? kBytesOfWait : kBytesOfWaitFromHost;
  return bytes / (rows_.size().stride * sizeof(float));
}

void PassRunner::RunCanonical(const SearchBatch& batch, std::span<const DeviceQuery> queries) {
  const CanonicalSize size = MeasureQueries(queries);
  const auto slots = static_cast<unsigned>(queries.size());
  const auto capacity = static_cast<unsigned>(std::min<std::size_t>(
      workspace_.size().hits_max / slots, std::size_t{size.places} + size.wanted));
  answered_ = {};
  FilledPass filled;
  filled.queries = workspace_.HoldQueries();
  filled.answers = {0, workspace_.host_answers(0)};
  FillQueries(batch, queries, slots, filled);
  const Pass pass = PassOver(slots, capacity, size.wanted);
  EnqueueTimed(cudaEventRecordDefault, [&] { EnqueueCanonical(filled, pass, size); });
  device_.Await(workspace_.stream(0));
  AddDeviceTime();
  answered_ = std::move(filled);
  answer_slots_ = slots;
  answer_stride_ = size.wanted;
}

void PassRunner::EnqueueCanonical(const FilledPass& filled, const Pass& pass,
                                  const CanonicalSize& size) {
  cudaStream_t stream = workspace_.stream(0);
  CopyIn(*filled.queries.block, LayQueries(pass.batch, pass.stride).bytes);
  device_.Check(cudaMemsetAsync(pass.hit_counts, 0, pass.batch * sizeof(unsigned), stream),
                "cudaMemsetAsync");
  device_.Check(cudaMemsetAsync(workspace_.thresholds(), 0, pass.batch * sizeof(Key), stream),
                "cudaMemsetAsync");
  const std::size_t rows_of_wait = std::max<std::size_t>(RowsOfWait() / pass.batch, 1);
  std::size_t rows_enqueued = 0;  // since the last wait
  for (unsigned done = 0; done < size.places;) {
    const auto step = static_cast<unsigned>(
        std::min<std::size_t>({size.places - done, pass.capacity - size.wanted, rows_of_wait,
                               std::max(kFirstStep, kStepGrowth * done)}));
    if (rows_enqueued + step > rows_of_wait) {
      device_.Await(stream);
      rows_enqueued = 0;
    }
    rows_enqueued += step;
    device_.Check(kernels::LaunchCanonicalScan(pass, {done, step}, workspace_.thresholds(), stream),
                  "canonical_scan");
    device_.Check(kernels::LaunchSelectKeys(pass, workspace_.thresholds(), stream), "select_keys");
    done += step;
  }
  CopyOut(*filled.answers.block, LayAnswers(pass.batch, size.wanted).bytes);
}

std::span<const Hit> PassRunner::Answer(std::size_t index) const {
  return {HitsOf(index), ProofOf(index).found};
}

const Hit* PassRunner::HitsOf(std::size_t index) const {
  const AnswerBlock block = LayAnswers(answer_slots_, answer_stride_);
  return reinterpret_cast<const Hit*>(answered_.answers.block->get() + block.best_at) +
         index * answer_stride_;
}

const kernels::Proof& PassRunner::ProofOf(std::size_t index) const {
  return reinterpret_cast<const kernels::Proof*>(answered_.answers.block->get())[index];
}

float PassRunner::FindLastScore(std::size_t index) const {
  const auto& terms =
      reinterpret_cast<const kernels::QueryTerms*>(answered_.queries.block->get())[index];
  return HitsOf(index)[terms.wanted - 1].score / terms.score_of_unit;
}

void PassRunner::Score(MatrixView queries, std::span<const Row> rows, std::span<float> scores) {
  if (queries.row_count() == 0 || rows.empty()) return;
  const std::size_t slots =
      std::min<std::size_t>(queries.row_count(), workspace_.size().queries_max);
  const std::size_t rows_max =
      std::min({workspace_.answer_bytes() / sizeof(float) / slots, workspace_.size().hits_max,
                std::max<std::size_t>(RowsOfWait() / slots, 1)});
  const HeldBlock held = workspace_.HoldQueries();
  for (std::size_t first = 0; first < queries.row_count(); first += slots) {
    const MatrixView taken = queries.Slice(first, std::min(slots, queries.row_count() - first));
    const QueryBlock block = LayQueries(taken.row_count(), taken.padded_dim());
    std::memcpy(held.block->get() + block.vectors_at, taken.data(), taken.bytes());
    CopyIn(*held.block, block.bytes);
    for (std::size_t done = 0; done < rows.size(); done += rows_max) {
      const auto listed = rows.subspan(done, std::min(rows_max, rows.size() - done));
      const float* computed = ScoreRows(taken.row_count(), listed);
      for (std::size_t query = 0; query < taken.row_count(); ++query) {
        std::copy_n(computed + query * listed.size(), listed.size(),
                    scores.data() + (first + query) * rows.size() + done);
      }
    }
  }
}

const float* PassRunner::ScoreRows(std::size_t query_count, std::span<const Row> rows) {
  std::vector<unsigned> list(rows.size());
  std::ranges::transform(rows, list.begin(), [&](Row row) { return row - rows_.first_row(); });
  cudaStream_t stream = workspace_.stream(0);
  const Pass pass = PassOver(static_cast<unsigned>(query_count), 0, 0);
  EnqueueTimed(cudaEventRecordDefault, [&] {
    device_.Check(cudaMemcpyAsync(workspace_.kept_rows(), list.data(),
                                  list.size() * sizeof(unsigned), cudaMemcpyHostToDevice, stream),
                  "cudaMemcpyAsync");
    device_.Check(
        kernels::LaunchRowScores(pass, workspace_.kept_rows(), static_cast<unsigned>(list.size()),
                                 reinterpret_cast<float*>(workspace_.answers()), stream),
        "row_scores");
    CopyOut(*workspace_.host_answers(0), query_count * list.size() * sizeof(float));
  });
  device_.Await(stream);
  AddDeviceTime();
  return reinterpret_cast<const float*>(workspace_.host_answers(0)->get());
}

}  // namespace simile::backend::cuda
