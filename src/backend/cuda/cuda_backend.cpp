#include "backend/cuda/cuda_backend.h"

#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "backend/cuda/blas_library.h"
#include "backend/cuda/cuda_engine.h"
#include "backend/cuda/kernel_variants.h"
#include "base/message_text.h"

namespace simile::backend::cuda {
namespace {

// Positions, and the offsets that kernels add to them, fit 32 bits.
constexpr std::size_t kRowsMax = std::size_t{1} << 31;

// A search that the device may run without a thread.
class CudaPass final : public SearchPass {
 public:
  CudaPass(CudaEngine& engine, ResidentRows& rows, const SearchBatch& batch, SearchResult& result)
      : engine_(engine), rows_(rows), batch_(batch), result_(result) {}
  ~CudaPass() override {
    if (started_ != nullptr) engine_.Abandon(std::move(started_));
  }

  bool Start() override {
    started_ = engine_.Start(rows_, batch_, result_);
    return started_ != nullptr;
  }
  bool HasEnded() const override { return started_ != nullptr && engine_.HasEnded(*started_); }

  absl::StatusOr<bool> Advance(const Turn& /*turn*/) override {
    const absl::Status status = started_ != nullptr
                                    ? engine_.Finish(std::move(started_), rows_, batch_, result_)
                                    : engine_.Search(rows_, batch_, result_);
    if (!status.ok()) return status;
    return true;
  }

 private:
  CudaEngine& engine_;
  ResidentRows& rows_;
  const SearchBatch batch_;
  SearchResult& result_;
  CudaEngine::StartedSearchPtr started_;
};

class CudaIndex final : public SegmentIndex {
 public:
  CudaIndex(std::shared_ptr<CudaEngine> engine, std::unique_ptr<ResidentRows> rows)
      : engine_(std::move(engine)), rows_(std::move(rows)), name_(engine_->NameFor(*rows_)) {}
  ~CudaIndex() override { engine_->Free(std::move(rows_)); }

  std::size_t row_count() const override { return rows_->host().rows.row_count(); }
  std::size_t dim() const override { return rows_->host().rows.dim(); }
  std::string_view engine() const override { return name_; }
  std::uint32_t sufficient_batch() const override { return rows_->choices().sufficient_batch(); }
  std::optional<ResidentPlan> Resident() const override {
    ResidentPlan plan;
    plan.device_bytes = rows_->device_bytes();
    return plan;
  }

  absl::Status Search(const SearchBatch& batch, SearchResult& result) const override {
    return engine_->Search(*rows_, batch, result);
  }
  absl::StatusOr<std::unique_ptr<SearchPass>> Begin(const SearchBatch& batch,
                                                    SearchResult& result) const override {
    return std::make_unique<CudaPass>(*engine_, *rows_, batch, result);
  }
  absl::StatusOr<FallbackBackend> Score(MatrixView queries, std::span<const Row> rows,
                                        std::span<float> scores,
                                        DeviceTime* device_time) const override {
    if (absl::Status status = engine_->Score(*rows_, queries, rows, scores, device_time);
        !status.ok()) {
      return status;
    }
    return nullptr;
  }

 private:
  const std::shared_ptr<CudaEngine> engine_;
  std::unique_ptr<ResidentRows> rows_;  // used under the engine's lock
  const std::string_view name_;         // of the engine
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(std::shared_ptr<CudaEngine> engine, bool int8_wanted, std::string limitation)
      : engine_(std::move(engine)),
        int8_rows_(int8_wanted && HasInt8Scan(engine_->device().traits().code_capability)),
        limitation_(std::move(limitation)) {
    const CardTraits& card = engine_->device().traits();
    info_ = {"gpu", fmt::format("fp16-sm{}", card.capability), card.name};
  }

  const BackendInfo& info() const override { return info_; }
  std::string limitation() const override { return limitation_; }
  std::vector<DeviceMemory> device_memory() const override { return engine_->device().memory(); }
  std::optional<CardMemory> card_memory() const override { return engine_->device().card_memory(); }

  // Includes the fp32 and int8 rows if an empty device would hold them.
  ResidentPlan Plan(const SegmentShape& shape) const override {
    const SegmentSize size{static_cast<unsigned>(shape.row_count),
                           static_cast<unsigned>(PaddedDim(shape.dim))};
    ResidentPlan plan;
    plan.device_bytes = PlanResidentIn(engine_->device().budget_bytes(), size, int8_rows_).total();
    return plan;
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
    const std::lock_guard lock(mutex_);  // one at a time, so that free_bytes() stays true
    Device& device = engine_->device();
    const ResidentSize planned = PlanResidentIn(device.free_bytes(), size, int8_rows_);
    const std::uint64_t needed = planned.total();
    if (needed > device.free_bytes()) {
      return absl::ResourceExhaustedError(fmt::format(
          "the collection takes {} of the GPU's memory without its fp32 rows, and {} of the {} "
          "that may be taken are free (gpu.memory_fraction, gpu.reserve_mib)",
          base::BytesText(needed), base::BytesText(device.free_bytes()),
          base::BytesText(device.budget_bytes())));
    }
    std::unique_ptr<ResidentRows> resident;
    absl::Status status = device.Guard([&] {
      device.Enter();
      resident = std::make_unique<ResidentRows>(device, rows, planned);
      device.ReadCardMemory();
    });
    if (status.ok()) status = engine_->ChoosePasses(*resident);
    if (!status.ok()) return status;
    return std::make_shared<const CudaIndex>(engine_, std::move(resident));
  }

 private:
  const std::shared_ptr<CudaEngine> engine_;
  const bool int8_rows_;
  const std::string limitation_;
  BackendInfo info_;
  std::mutex mutex_;  // held while a segment is loaded
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> OpenCudaBackend(const GpuOptions& options) {
  const BlasLibrary blas = LoadBlas(options);
  std::string limitation;
  if (!blas.loaded()) {
    limitation = fmt::format("batches of more than {} queries take several scans, because {}",
                             options.tuning.scan_queries_max, blas.missing);
  }
  std::shared_ptr<CudaEngine> engine;
  try {
    engine = std::make_shared<CudaEngine>(options, blas);
  } catch (const DeviceError& error) {
    return error.status();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "this machine is out of memory, which opening the GPU needs");
  }
  if (absl::Status status = engine->CheckCard(); !status.ok()) return status;
  if (absl::Status status = engine->OpenWorkspace(); !status.ok()) return status;
  return std::make_unique<CudaBackend>(std::move(engine), options.int8_rows, std::move(limitation));
}

}  // namespace simile::backend::cuda
