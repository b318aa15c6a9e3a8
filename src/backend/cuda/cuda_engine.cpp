#include "backend/cuda/cuda_engine.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <absl/cleanup/cleanup.h>
#include <fmt/format.h>

#include "backend/accelerator_plugin.h"
#include "backend/cuda/batch_search.h"
#include "backend/cuda/kernel_variants.h"
#include "backend/cuda/pass_choices.h"
#include "backend/cuda/pass_runner.h"
#include "backend/cuda/profiler_range.h"
#include "base/message_text.h"
#include "simile/clock.h"
#include "simile/matrix_view.h"

namespace simile::backend::cuda {
namespace {

// Times passes over a segment while it is loaded, with the segment's rows as queries. A row's score
// with itself is the highest score, as in searches for similar items. Borrows everything.
class PassTimer {
 public:
  //   must_stop  asked after each run of a pass
  // Throws std::bad_alloc.
  PassTimer(Device& device, ResidentRows& rows, const Clock& clock,
            std::function<bool()> must_stop);

  // Times one pass for the first `queries` queries. Throws DeviceError.
  // REQUIRES: queries <= plan.slots; no filter of the segment is in use.
  Trial Time(Workspace& workspace, const PassPlan& plan, unsigned queries, unsigned hits);

  // Times one query with a filter that one row in one_row_in passes: by canonical scores of a list
  // of these rows, or by a pass with a mask. kUnproven also when no such list is possible, or when
  // the rows are on the host. Throws DeviceError.
  Trial TimeFiltered(Workspace& workspace, const GpuTuning& tuning, unsigned one_row_in,
                     bool as_list);

 private:
  // Runs a pass a few times. Nothing when it must stop before a time was taken.
  template <class Run>
  std::optional<double> Fastest(Run run) const;

  Device& device_;
  ResidentRows& rows_;
  const Clock& clock_;
  const std::function<bool()> must_stop_;
  // The rows that serve as queries: indexes into a batch of all rows of the segment.
  std::vector<DeviceQuery> queries_;
  std::vector<QuerySpec> specs_;  // [rows up to the last of them]
};

// The first run may load code, and the second captures the graph.
constexpr unsigned kRunsBefore = 2;
constexpr unsigned kRunsMax = 5;
// Long passes are not repeated: their times vary less.
constexpr std::chrono::milliseconds kEnough{5};

constexpr unsigned kHitsOfFiltered = 10;
// The rows of a segment, from the first on, that may serve as queries. Zero rows are skipped.
constexpr std::size_t kRowsLookedAt = 16'384;

PassTimer::PassTimer(Device& device, ResidentRows& rows, const Clock& clock,
                     std::function<bool()> must_stop)
    : device_(device), rows_(rows), clock_(clock), must_stop_(std::move(must_stop)) {
  const MatrixView& all = rows.host().rows;
  const unsigned largest = std::ranges::max(PassClasses(), {}, &PassClass::queries_max).queries_max;
  const std::size_t end = std::min(all.row_count(), kRowsLookedAt);
  for (std::size_t row = 0; row < end && queries_.size() < largest; ++row) {
    if (IsZeroVector(all[row])) continue;  // no pass answers it
    queries_.emplace_back().index = static_cast<std::uint32_t>(row);
    specs_.resize(row + 1);
  }
}

template <class Run>
std::optional<double> PassTimer::Fastest(Run run) const {
  for (unsigned i = 0; i < kRunsBefore; ++i) {
    run();
    if (must_stop_()) return std::nullopt;
  }
  const Clock::TimePoint first = clock_.Now();
  double least = std::numeric_limits<double>::infinity();
  for (unsigned i = 0; i < kRunsMax; ++i) {
    const Clock::TimePoint began = clock_.Now();
    run();
    const Clock::TimePoint ended = clock_.Now();
    least = std::min(least, std::chrono::duration<double>(ended - began).count());
    if (ended - first >= kEnough || must_stop_()) break;
  }
  return least;
}

Trial PassTimer::Time(Workspace& workspace, const PassPlan& plan, unsigned queries, unsigned hits) {
  if (queries_.size() < queries) return {Trial::End::kUnproven, 0};
  const std::span<DeviceQuery> batch = std::span(queries_).first(queries);
  for (DeviceQuery& query : batch) query.wanted = hits;
  PassRunner runner(device_, workspace, rows_);
  const auto seconds = Fastest([&] {
    runner.Run(plan, SearchBatch{rows_.host().rows, specs_}, batch);
  });
  if (!seconds) return {Trial::End::kStopped, 0};
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (runner.ProofOf(i).flag != kernels::kProven) return {Trial::End::kUnproven, 0};
  }
  return {Trial::End::kTimed, *seconds};
}

Trial PassTimer::TimeFiltered(Workspace& workspace, const GpuTuning& tuning, unsigned one_row_in,
                              bool as_list) {
  const Trial unproven{Trial::End::kUnproven, 0};
  const SegmentSize& size = rows_.size();
  if (queries_.empty() || !rows_.rows_on_device()) return unproven;
  RowMask mask(std::size_t{rows_.first_row()} + size.row_count);
  for (unsigned row = 0; row < size.row_count; row += one_row_in) {
    mask.Allow(rows_.first_row() + row);
  }
  const absl::Cleanup release = [&] { rows_.filters().Release(); };
  const unsigned list_max = as_list ? size.row_count : 0;
  const Filter* const filter = rows_.filters().Use(mask, list_max, workspace.stream(0));
  if (filter == nullptr || filter->is_list != as_list || filter->passing < kHitsOfFiltered) {
    return unproven;
  }
  DeviceQuery query = queries_.front();
  query.filter = filter;
  query.wanted = kHitsOfFiltered;
  const SearchBatch batch{rows_.host().rows, specs_};
  PassRunner runner(device_, workspace, rows_);
  std::optional<double> seconds;
  if (as_list) {
    seconds = Fastest([&] { runner.RunCanonical(batch, {&query, 1}); });
  } else {
    const auto plan = PlanPass(device_.traits(), tuning, workspace.size(), size,
                               MakeDemand(rows_, 1, query.wanted, query.reach(), true));
    if (!plan) return unproven;
    seconds = Fastest([&] { runner.Run(*plan, batch, {&query, 1}); });
    if (seconds && runner.ProofOf(0).flag != kernels::kProven) return unproven;
  }
  if (!seconds) return {Trial::End::kStopped, 0};
  return {Trial::End::kTimed, *seconds};
}

// Rounds up to eighths of the next lower power of two, so that collections of nearly the same size
// share an entry.
unsigned RoundedRows(unsigned row_count) {
  const unsigned step = std::max(std::bit_floor(row_count) / 8, 1U);
  return (row_count + step - 1) / step * step;
}

}  // namespace

CudaEngine::CudaEngine(const GpuOptions& options, const BlasLibrary& blas)
    : tuning_(options.tuning),
      choice_time_(options.choice_time),
      choice_store_(options.choice_store),
      clock_(*options.clock),
      device_(options, blas),
      names_(device_.traits().capability),
      sizes_(SizesToTry(blas.LimitSize(options.workspace))) {}

absl::Status CudaEngine::CheckCard() {
  constexpr unsigned kNarrowest = kLaneCount;
  const CardTraits& card = device_.traits();
  const absl::Status status = device_.Guard([&] {
    const KernelVariant& scan = FindScanVariant(card.code_capability);
    const kernels::RowScanShape shape = scan.ShapeFor(kNarrowest, 1, card.shared_bytes_max);
    device_.Check(scan.prepare(shape, card.shared_bytes_max), "cudaFuncSetAttribute");
  });
  if (status.ok() || device_.lost()) return status;
  absl::Status no_code = absl::FailedPreconditionError(
      fmt::format("this build's GPU plug-in has no code for the {} (sm_{}): {}", card.name,
                  card.capability, std::string(status.message())));
  if (const auto code = status.GetPayload(kDeviceErrorPayload)) {
    no_code.SetPayload(kDeviceErrorPayload, *code);
  }
  return no_code;
}

absl::Status CudaEngine::OpenWorkspace() {
  for (; next_size_ < sizes_.size(); ++next_size_) {
    const WorkspaceSize& size = sizes_[next_size_];
    if (WorkspaceBytes(size) > device_.free_bytes()) continue;
    const absl::Status status = device_.Guard([&] {
      device_.Enter();
      workspace_.emplace(device_, size, ++workspaces_made_);
      device_.ReadCardMemory();
    });
    if (!absl::IsResourceExhausted(status)) return status;
  }
  next_size_ = sizes_.size() - 1;  // the next call tries the smallest size again
  return absl::ResourceExhaustedError(fmt::format(
      "the GPU's memory is too small: a workspace takes {} at least, and {} of the {} that may be "
      "taken are free (gpu.memory_fraction, gpu.reserve_mib)",
      base::BytesText(WorkspaceBytes(sizes_.back())), base::BytesText(device_.free_bytes()),
      base::BytesText(device_.budget_bytes())));
}

std::unique_lock<std::mutex> CudaEngine::LockForCall() {
  ++calls_waiting_;
  std::unique_lock lock(mutex_);
  --calls_waiting_;
  return lock;
}

template <class Work>
absl::Status CudaEngine::RunOnWorkspace(Work& work) {
  absl::Status status = device_.Guard([&] {
    device_.Enter();
    work(*workspace_);
  });
  if (status.ok()) {
    device_.BatchWasInTime();
  } else {
    failed_batch_may_run_ = true;
  }
  return status;
}

template <class Work>
absl::Status CudaEngine::WithWorkspace(Work work) {
  const std::unique_lock lock = LockForCall();
  // Copies from memory that is not pinned wait for the stream without a timeout, so waits with a
  // timeout come first.
  if (failed_batch_may_run_ || (started_ > 0 && workspace_)) {
    if (absl::Status status = AwaitStreams(); !status.ok()) return status;
  }
  for (;;) {
    if (!workspace_) {
      if (absl::Status status = OpenWorkspace(); !status.ok()) return status;
    }
    absl::Status status = RunOnWorkspace(work);
    if (status.ok()) return status;
    // The CPU answers a late batch now; the next batch waits for the end of the late one.
    if (absl::IsDeadlineExceeded(status) || !AwaitStreams().ok()) return status;
    const bool device_is_full =
        absl::IsResourceExhausted(status) && status.GetPayload(kDeviceErrorPayload).has_value();
    if (!device_is_full || next_size_ + 1 >= sizes_.size()) return status;
    workspace_.reset();
    ++next_size_;
  }
}

// Waits until the device has nothing to do, so that the buffers of a failed batch are free. Errors:
// also kDeadlineExceeded, which counts as a late batch.
absl::Status CudaEngine::AwaitStreams() {
  absl::Status status = device_.Guard([&] {
    device_.Enter();
    for (unsigned i = 0; i < 2; ++i) device_.Await(workspace_->stream(i));
  });
  failed_batch_may_run_ = !status.ok();
  return status;
}

// May run on any thread: a result can be the last owner.
CudaEngine::~CudaEngine() {
  static_cast<void>(device_.Guard([&] { device_.Enter(); }));
  if (failed_batch_may_run_) static_cast<void>(AwaitStreams());
}

absl::Status CudaEngine::ChoosePasses(ResidentRows& rows) {
  if (rows.size().row_count <= tuning_.canonical_rows_max) return absl::OkStatus();
  const GpuSegmentKey key{device_.traits().name, RoundedRows(rows.size().row_count),
                          rows.size().stride, rows.has_int8()};
  GpuChoices known;
  if (choice_store_ != nullptr) known = choice_store_->Read(key);
  PassChoices choices(known);
  if (choice_time_ > choice_time_.zero()) {
    try {
      MeasureMissingClasses(rows, choices);
    } catch (const std::bad_alloc&) {  // the rules decide for classes that were not measured
    }
  }
  if (device_.lost()) return device_.WhyLost();
  const GpuChoices now = choices.ToKeep();
  if (choice_store_ != nullptr && now != known) choice_store_->Write(key, now);
  rows.set_choices(std::move(choices));
  return absl::OkStatus();
}

void CudaEngine::MeasureMissingClasses(ResidentRows& rows, PassChoices& choices) {
  const Clock::TimePoint end = clock_.Now() + choice_time_;
  const auto must_stop = [&] { return calls_waiting_ > 0 || clock_.Now() >= end; };
  WorkspaceSize size;
  std::uint64_t number = 0;  // of the workspace that passes are planned for
  {
    const std::lock_guard lock(mutex_);
    if (!workspace_) return;
    size = workspace_->size();
    number = workspace_->number();
  }
  PassTimer timer(device_, rows, clock_, must_stop);
  // A trial, if there is time for one.
  const auto run = [&](auto time) {
    Trial trial;
    if (must_stop()) return trial;
    const absl::Status status =
        TryOnWorkspace(number, [&](Workspace& workspace) { trial = time(workspace); });
    // A failed call of one variant says nothing about other variants.
    if (absl::IsInternal(status) && !device_.lost()) return Trial{Trial::End::kUnproven, 0};
    return status.ok() ? trial : Trial();
  };
  MeasureChoices({.card = device_.traits(),
                  .tuning = tuning_,
                  .workspace = size,
                  .segment = rows.size(),
                  .demand =
                      [&](const PassClass& each) {
                        return MakeDemand(rows, each.queries_max, each.hits_timed, each.hits_timed,
                                          true);
                      },
                  .time =
                      [&](const PassPlan& plan, const PassClass& each) {
                        return run([&](Workspace& workspace) {
                          return timer.Time(workspace, plan, each.queries_max, each.hits_timed);
                        });
                      },
                  .time_filtered =
                      [&](unsigned one_row_in, bool as_list) {
                        return run([&](Workspace& workspace) {
                          return timer.TimeFiltered(workspace, tuning_, one_row_in, as_list);
                        });
                      }},
                 choices);
}

// Unlike WithWorkspace it never takes a smaller workspace: passes were planned for this one.
template <class Work>
absl::Status CudaEngine::TryOnWorkspace(std::uint64_t number, Work work) {
  const std::lock_guard lock(mutex_);
  if (failed_batch_may_run_ || !workspace_ || workspace_->number() != number) {
    return absl::UnavailableError("the workspace is another one");
  }
  if (started_ > 0) {
    if (absl::Status status = AwaitStreams(); !status.ok()) return status;
  }
  absl::Status status = RunOnWorkspace(work);
  if (!status.ok() && !absl::IsDeadlineExceeded(status)) static_cast<void>(AwaitStreams());
  return status;
}

const std::string& CudaEngine::NameFor(const ResidentRows& rows) const {
  return NameOfOneQuery(device_.traits(), tuning_, names_, sizes_.front(), rows);
}

absl::Status CudaEngine::Search(ResidentRows& rows, const SearchBatch& batch,
                                SearchResult& result) {
  return WithWorkspace([&](Workspace& workspace) {
    const ProfilerRange range("search");
    result.ResetWithoutSpace(batch.specs, rows.size().row_count);
    PassRunner runner(device_, workspace, rows, batch.device_time);
    BatchSearch(device_.traits(), tuning_, names_, runner, shared_from_this()).Run(batch, result);
  });
}

CudaEngine::StartedSearch::StartedSearch(CudaEngine& engine, Workspace& workspace,
                                         ResidentRows& rows)
    : workspace_number(workspace.number()),
      runner(engine.device_, workspace, rows),
      search(engine.device_.traits(), engine.tuning_, engine.names_, runner,
             engine.shared_from_this()) {}

CudaEngine::StartedSearchPtr CudaEngine::Start(ResidentRows& rows, const SearchBatch& batch,
                                               SearchResult& result) {
  // Short batches are exchanged in mapped memory.
  if (batch.device_time != nullptr || batch.specs.size() <= tuning_.mapped_queries_max) {
    return nullptr;
  }
  const std::unique_lock lock = LockForCall();
  if (failed_batch_may_run_ || !workspace_) return nullptr;
  StartedSearchPtr started;
  const absl::Status status = device_.Guard([&] {
    const ProfilerRange range("search");
    device_.Enter();
    result.ResetWithoutSpace(batch.specs, rows.size().row_count);
    auto search = std::make_unique<StartedSearch>(*this, *workspace_, rows);
    if (search->search.Start(batch, result)) started = std::move(search);
  });
  if (!status.ok()) failed_batch_may_run_ = true;
  if (started != nullptr) ++started_;
  return started;
}

bool CudaEngine::HasEnded(const StartedSearch& started) {
  bool has_ended = false;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || failed_batch_may_run_ || !workspace_ ||
      workspace_->number() != started.workspace_number) {
    return false;
  }
  static_cast<void>(device_.Guard([&] {
    device_.Enter();
    has_ended = started.runner.HasEnded();
  }));
  return has_ended;
}

absl::Status CudaEngine::Finish(StartedSearchPtr started, ResidentRows& rows,
                                const SearchBatch& batch, SearchResult& result) {
  {
    const std::unique_lock lock = LockForCall();
    const absl::Cleanup end = [&] {
      started.reset();  // frees its blocks while the lock is held
      --started_;
    };
    if (failed_batch_may_run_) {
      if (absl::Status status = AwaitStreams(); !status.ok()) return status;
    }
    if (workspace_ && workspace_->number() == started->workspace_number) {
      const auto finish = [&](Workspace& /*workspace*/) {
        const ProfilerRange range("search");
        started->search.Finish(device_);
      };
      const absl::Status status = RunOnWorkspace(finish);
      if (!absl::IsResourceExhausted(status)) return status;
    }
  }
  // The workspace was replaced, or the queries that the pass left ran out of memory.
  return Search(rows, batch, result);
}

void CudaEngine::Abandon(StartedSearchPtr started) {
  const std::lock_guard lock(mutex_);
  if (workspace_ && !failed_batch_may_run_) static_cast<void>(AwaitStreams());
  started.reset();
  --started_;
}

absl::Status CudaEngine::Score(ResidentRows& rows, MatrixView queries, std::span<const Row> wanted,
                               std::span<float> scores, DeviceTime* device_time) {
  return WithWorkspace([&](Workspace& workspace) {
    const ProfilerRange range("row scores");
    PassRunner(device_, workspace, rows, device_time).Score(queries, wanted, scores);
  });
}

void CudaEngine::Free(std::unique_ptr<ResidentRows> rows) {
  if (failed_batch_may_run_) {
    const std::lock_guard lock(mutex_);
    if (failed_batch_may_run_) static_cast<void>(AwaitStreams());
  }
  static_cast<void>(device_.Guard([&] { device_.Enter(); }));
  rows.reset();
  static_cast<void>(device_.Guard([&] { device_.ReadCardMemory(); }));
}

}  // namespace simile::backend::cuda
