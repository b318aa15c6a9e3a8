#include "backend/cuda/cuda_backend.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backend/cuda/batch_search.h"
#include "backend/cuda/blas_library.h"
#include "backend/cuda/device.h"
#include "backend/cuda/pass_runner.h"
#include "backend/cuda/plugin.h"
#include "backend/cuda/resident_rows.h"
#include "backend/cuda/workspace.h"

namespace simile::backend::cuda {
namespace {

// Positions, and what kernels add to them, fit 32 bits.
constexpr std::size_t kRowsMax = std::size_t{1} << 31;

std::string MiB(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1U << 20));
}

// The device, its workspace and the one batch at a time that it answers. Outlives its segments.
class CudaEngine {
 public:
  CudaEngine(const GpuOptions& options, const BlasLibrary& blas)
      : tuning_(options.tuning),
        device_(options, blas),
        names_(device_.traits().capability),
        sizes_(SmallerSizes(options.workspace)) {
    sizes_.insert(sizes_.begin(), options.workspace);
  }

  Device& device() { return device_; }
  const Device& device() const { return device_; }

  // Takes the largest workspace that fits. Errors as SimileCudaPlugin::open.
  absl::Status OpenWorkspace() {
    for (; next_size_ < sizes_.size(); ++next_size_) {
      const WorkspaceSize& size = sizes_[next_size_];
      if (device_.held_bytes() + DeviceBytes(size) > device_.budget_bytes()) continue;
      const absl::Status status = device_.Guard([&] {
        device_.Enter();
        workspace_.emplace(device_, size);
        ++workspace_number_;
      });
      if (!absl::IsResourceExhausted(status)) return status;
    }
    next_size_ = sizes_.size() - 1;  // the smallest is tried again when it is needed next
    return absl::ResourceExhaustedError(fmt::format(
        "the GPU's memory is too small: its workspace takes {}, and {} of the {} that may be taken "
        "are free (gpu.memory_fraction, gpu.reserve_mib)",
        MiB(DeviceBytes(sizes_.back())),
        MiB(device_.budget_bytes() - std::min(device_.budget_bytes(), device_.held_bytes())),
        MiB(device_.budget_bytes())));
  }

  //   work  called with a workspace; again, with a smaller one, where memory ran out
  template <class Work>
  absl::Status WithWorkspace(Work work) {
    const std::lock_guard lock(mutex_);
    for (;;) {
      if (!workspace_) {
        if (absl::Status status = OpenWorkspace(); !status.ok()) return status;
      }
      absl::Status status = device_.Guard([&] {
        device_.Enter();
        work(*workspace_, workspace_number_);
      });
      if (status.ok()) return status;
      Settle();
      const bool device_is_full =
          absl::IsResourceExhausted(status) && status.GetPayload(kCudaErrorPayload).has_value();
      if (!device_is_full || device_.lost() || next_size_ + 1 >= sizes_.size()) return status;
      workspace_.reset();
      ++next_size_;
    }
  }

  absl::Status Search(ResidentRows& rows, const SearchBatch& batch, SearchResult& result) {
    return WithWorkspace([&](Workspace& workspace, std::uint64_t number) {
      std::uint32_t hits_max = 0;
      for (const QuerySpec& spec : batch.specs) {
        hits_max = std::max(hits_max, std::min(spec.k, rows.size().row_count));
      }
      result.Reset(batch.specs.size(), hits_max);
      PassRunner runner(device_, workspace, rows, number);
      BatchSearch(device_.traits(), tuning_, names_, workspace, rows, runner).Run(batch, result);
    });
  }

  absl::Status Score(ResidentRows& rows, MatrixView queries, std::span<const Row> wanted,
                     std::span<float> scores) {
    return WithWorkspace([&](Workspace& workspace, std::uint64_t number) {
      PassRunner(device_, workspace, rows, number).Score(queries, wanted, scores);
    });
  }

  // A segment's device memory is given back under the lock, so that no batch is in its midst.
  void Free(std::unique_ptr<ResidentRows> rows) {
    const std::lock_guard lock(mutex_);
    static_cast<void>(device_.Guard([&] { device_.Enter(); }));
    rows.reset();
  }

 private:
  // After a call that failed: nothing of the batch is left on the device when its buffers are used
  // again.
  void Settle() {
    static_cast<void>(device_.Guard([&] {
      for (unsigned i = 0; i < 2; ++i) device_.Await(workspace_->stream(i));
    }));
  }

  const GpuTuning tuning_;
  Device device_;
  const RoadNames names_;
  std::mutex mutex_;                  // guards what follows, and what batches use of segments
  std::vector<WorkspaceSize> sizes_;  // from the one that is wanted to the smallest
  std::size_t next_size_ = 0;         // of the workspace, or of the next to try
  std::optional<Workspace> workspace_;
  std::uint64_t workspace_number_ = 0;
};

class CudaIndex final : public SegmentIndex {
 public:
  CudaIndex(std::shared_ptr<CudaEngine> engine, std::unique_ptr<ResidentRows> rows)
      : engine_(std::move(engine)), rows_(std::move(rows)) {}
  ~CudaIndex() override { engine_->Free(std::move(rows_)); }

  std::size_t row_count() const override { return rows_->host().rows.row_count(); }
  std::size_t dim() const override { return rows_->host().rows.dim(); }

  absl::Status Search(const SearchBatch& batch, SearchResult& result) const override {
    return engine_->Search(*rows_, batch, result);
  }
  absl::Status Score(MatrixView queries, std::span<const Row> rows,
                     std::span<float> scores) const override {
    return engine_->Score(*rows_, queries, rows, scores);
  }

 private:
  const std::shared_ptr<CudaEngine> engine_;
  std::unique_ptr<ResidentRows> rows_;  // used under the engine's lock
};

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(std::shared_ptr<CudaEngine> engine) : engine_(std::move(engine)) {
    const CardTraits& card = engine_->device().traits();
    info_ = {"gpu", fmt::format("fp16-sm{}", card.capability),
             fmt::format("{} ({:.0f} GiB)", card.name,
                         static_cast<double>(card.memory_bytes) / (1U << 30))};
  }

  const BackendInfo& info() const override { return info_; }
  std::vector<DeviceMemory> device_memory() const override { return engine_->device().memory(); }

  ResidentPlan Plan(const SegmentShape& shape) const override {
    const SegmentSize size{static_cast<unsigned>(shape.row_count),
                           static_cast<unsigned>(PaddedDim(shape.dim))};
    return {.host_bytes = 0, .device_bytes = PlanResident(size, RowsFit(size)).total()};
  }

  absl::StatusOr<std::shared_ptr<const SegmentIndex>> MakeResident(
      const SegmentRows& rows) override {
    if (rows.rows.row_count() > kRowsMax) {
      return absl::ResourceExhaustedError(
          fmt::format("the GPU takes up to {} rows of a collection, and this has {}", kRowsMax,
                      rows.rows.row_count()));
    }
    const SegmentSize size{static_cast<unsigned>(rows.rows.row_count()),
                           static_cast<unsigned>(rows.rows.padded_dim())};
    const std::lock_guard lock(mutex_);  // one at a time: each relies on what the last has left
    const bool rows_on_device = RowsFit(size);
    Device& device = engine_->device();
    const std::uint64_t needed = PlanResident(size, rows_on_device).total();
    if (needed > FreeBytes()) return DoesNotFit(needed);
    std::unique_ptr<ResidentRows> resident;
    absl::Status status = device.Guard([&] {
      device.Enter();
      resident = std::make_unique<ResidentRows>(device, rows, rows_on_device);
    });
    if (absl::IsResourceExhausted(status)) return DoesNotFit(needed);
    if (!status.ok()) return status;
    return std::make_shared<const CudaIndex>(engine_, std::move(resident));
  }

 private:
  std::uint64_t FreeBytes() const {
    const Device& device = engine_->device();
    return device.budget_bytes() - std::min(device.budget_bytes(), device.held_bytes());
  }

  // Whether the fp32 rows go to the device, too. Those that do not are read from the host.
  bool RowsFit(const SegmentSize& size) const {
    return PlanResident(size, true).total() <= FreeBytes();
  }

  absl::Status DoesNotFit(std::uint64_t needed) const {
    return absl::ResourceExhaustedError(fmt::format(
        "the GPU's memory is too small: the collection takes {} there without its fp32 rows, and "
        "{} of the {} that may be taken are free (gpu.memory_fraction, gpu.reserve_mib)",
        MiB(needed), MiB(FreeBytes()), MiB(engine_->device().budget_bytes())));
  }

  const std::shared_ptr<CudaEngine> engine_;
  BackendInfo info_;
  std::mutex mutex_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> OpenCudaBackend(const GpuOptions& options) {
  const absl::StatusOr<BlasLibrary> blas = LoadBlas(options.blas_libraries);
  if (!blas.ok()) return blas.status();
  std::shared_ptr<CudaEngine> engine;
  try {
    engine = std::make_shared<CudaEngine>(options, *blas);
  } catch (const DeviceError& error) {
    return absl::UnavailableError(error.what());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("no host memory to open the GPU with");
  }
  if (absl::Status status = engine->OpenWorkspace(); !status.ok()) return status;
  return std::make_unique<CudaBackend>(std::move(engine));
}

}  // namespace simile::backend::cuda
