#include "backend/failover_backend.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include <absl/strings/cord.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "backend/gpu_search.h"
#include "base/error_detail.h"

namespace simile::backend {
namespace {

class FailoverBackend final : public Backend {
 public:
  FailoverBackend(std::unique_ptr<Backend> gpu, std::unique_ptr<Backend> cpu, WhenFull when_full,
                  GpuObserver observer)
      : gpu_(std::move(gpu)),
        cpu_(std::move(cpu)),
        when_full_(when_full),
        observer_(std::move(observer)) {}

  const BackendInfo& info() const override { return gpu_->info(); }

  FallbackBackend fallback() const override {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

  std::vector<DeviceMemory> device_memory() const override { return gpu_->device_memory(); }
  std::optional<CardMemory> card_memory() const override { return gpu_->card_memory(); }

  ResidentPlan Plan(const SegmentShape& shape) const override {
    ResidentPlan plan = cpu_->Plan(shape);
    if (fallback() != nullptr) return plan;
    const ResidentPlan gpu_plan = gpu_->Plan(shape);
    plan.host_bytes += gpu_plan.host_bytes;
    plan.device_bytes += gpu_plan.device_bytes;
    plan.builds_later = true;  // when the CPU must answer
    return plan;
  }

  absl::StatusOr<std::shared_ptr<const SegmentIndex>> MakeResident(
      const SegmentRows& rows) override;

  // For its segments:

  Backend& gpu() const { return *gpu_; }
  Backend& cpu() const { return *cpu_; }

  // Reports that the GPU failed a batch. Returns the backend that answers it, and why.
  FallbackBackend FallBackForBatch(const absl::Status& failed) {
    const std::string reason(failed.message());
    switch (failed.code()) {
      case absl::StatusCode::kUnavailable:
        return FallBackForGood(failed);
      case absl::StatusCode::kResourceExhausted:
        return FallBack(FallbackCause::kOutOfMemory, failed,
                        fmt::format("the GPU had no memory for this batch: {}", reason));
      case absl::StatusCode::kDeadlineExceeded:
        return FallBack(FallbackCause::kLate, failed, fmt::format("the GPU was late: {}", reason));
      default:
        return FallBack(FallbackCause::kCallFailed, failed,
                        fmt::format("the GPU failed at this batch: {}", reason));
    }
  }

 private:
  FallbackBackend FallBack(FallbackCause cause, const absl::Status& failed,
                           std::string reason) const {
    Report(cause, failed);
    return CpuBecause(std::move(reason));
  }

  // Marks the device as lost; only the first caller reports it.
  FallbackBackend FallBackForGood(const absl::Status& failed) {
    {
      const std::lock_guard lock(mutex_);
      if (lost_ != nullptr) return lost_;
      lost_ = CpuBecause(fmt::format("the GPU was lost and is left alone until a restart: {}",
                                     std::string(failed.message())));
    }
    Report(FallbackCause::kDeviceLost, failed);
    return fallback();
  }

  FallbackBackend CpuBecause(std::string reason) const {
    return std::make_shared<const ServedBy>(ServedBy{cpu_->info(), std::move(reason)});
  }

  void Report(FallbackCause cause, const absl::Status& failed) const {
    if (observer_) observer_({cause, ParseDeviceError(failed), std::string(failed.message())});
  }

  absl::StatusOr<std::shared_ptr<const SegmentIndex>> MakeResidentOnCpu(const SegmentRows& rows,
                                                                        FallbackBackend fallback);

  const std::unique_ptr<Backend> gpu_;
  const std::unique_ptr<Backend> cpu_;
  const WhenFull when_full_;
  const GpuObserver observer_;
  mutable std::mutex mutex_;  // guards lost_
  FallbackBackend lost_;      // set once, when the device is lost
};

// One segment on the GPU, on the CPU, or on both. Thread-safe.
class FailoverIndex final : public SegmentIndex {
 public:
  FailoverIndex(FailoverBackend& backend, SegmentRows rows, std::shared_ptr<const SegmentIndex> gpu)
      : backend_(backend), rows_(std::move(rows)), gpu_(std::move(gpu)) {}
  // A segment that is on the CPU from the start.
  //   fallback  the CPU, and why
  FailoverIndex(FailoverBackend& backend, SegmentRows rows, std::shared_ptr<const SegmentIndex> cpu,
                FallbackBackend fallback)
      : backend_(backend),
        rows_(std::move(rows)),
        fallback_(std::move(fallback)),
        cpu_(std::move(cpu)) {}

  std::size_t row_count() const override { return rows_.rows.row_count(); }
  std::size_t dim() const override { return rows_.rows.dim(); }

  absl::StatusOr<double> Built() const override {
    if (fallback() == nullptr) return gpu_->Built();
    const std::lock_guard lock(cpu_mutex_);
    return cpu_ == nullptr ? 0.0 : cpu_->Built();
  }

  // Before the first search makes the CPU index, only the name of the backend is known.
  std::string_view engine() const override {
    if (fallback() == nullptr) return gpu_->engine();
    const std::lock_guard lock(cpu_mutex_);
    return cpu_ == nullptr ? std::string_view(backend_.cpu().info().engine) : cpu_->engine();
  }

  std::uint32_t sufficient_batch() const override {
    return fallback() == nullptr ? gpu_->sufficient_batch() : 0;
  }

  FallbackBackend fallback() const override {
    return fallback_ != nullptr ? fallback_ : backend_.fallback();
  }

  std::optional<ResidentPlan> Resident() const override {
    const SegmentShape shape{row_count(), dim(), rows_.metric};
    ResidentPlan resident;
    if (gpu_ != nullptr) resident = gpu_->Resident().value_or(backend_.gpu().Plan(shape));
    const std::lock_guard lock(cpu_mutex_);
    if (cpu_ != nullptr) resident.host_bytes += backend_.cpu().Plan(shape).host_bytes;
    return resident;
  }

  absl::Status Search(const SearchBatch& batch, SearchResult& result) const override {
    return SearchBy(&SegmentIndex::Search, batch, result);
  }

  absl::StatusOr<std::unique_ptr<SearchPass>> Begin(const SearchBatch& batch,
                                                    SearchResult& result) const override {
    return std::make_unique<Pass>(*this, batch, result);
  }

  bool CanPause() const override { return fallback() != nullptr; }

  absl::Status SearchAside(const SearchBatch& batch, SearchResult& result) const override {
    return SearchBy(&SegmentIndex::SearchAside, batch, result);
  }

  absl::StatusOr<FallbackBackend> Score(MatrixView queries, std::span<const Row> rows,
                                        std::span<float> scores,
                                        DeviceTime* device_time) const override {
    return Run([&](const SegmentIndex& index) {
      return index.Score(queries, rows, scores, device_time).status();
    });
  }

 private:
  // A search on the GPU as long as it answers, else on the CPU.
  class Pass final : public SearchPass {
   public:
    Pass(const FailoverIndex& index, const SearchBatch& batch, SearchResult& result)
        : index_(index), batch_(batch), result_(result), fallback_(index.fallback()) {}

    bool Start() override {
      if (fallback_ != nullptr) return false;
      absl::StatusOr<std::unique_ptr<SearchPass>> begun = index_.gpu_->Begin(batch_, result_);
      if (!begun.ok()) return false;  // Advance tries again, and returns the error
      pass_ = *std::move(begun);
      return pass_->Start();
    }

    bool HasEnded() const override { return pass_ != nullptr && pass_->HasEnded(); }

    absl::StatusOr<bool> Advance(const Turn& turn) override {
      if (fallback_ == nullptr) {
        const absl::StatusOr<bool> done = AdvanceOn(*index_.gpu_, turn);
        if (done.ok()) return done;
        pass_.reset();
        fallback_ = index_.backend_.FallBackForBatch(done.status());
      }
      const auto cpu = index_.CpuIndex();
      if (!cpu.ok()) return cpu.status();
      absl::StatusOr<bool> done = AdvanceOn(**cpu, turn);
      if (done.ok() && *done) result_.SetFallback(fallback_);
      return done;
    }

    std::uint64_t bytes() const override { return pass_ == nullptr ? 0 : pass_->bytes(); }

   private:
    absl::StatusOr<bool> AdvanceOn(const SegmentIndex& index, const Turn& turn) {
      if (pass_ == nullptr) {
        absl::StatusOr<std::unique_ptr<SearchPass>> begun = index.Begin(batch_, result_);
        if (!begun.ok()) return begun.status();
        pass_ = *std::move(begun);
      }
      return pass_->Advance(turn);
    }

    const FailoverIndex& index_;
    const SearchBatch batch_;
    SearchResult& result_;
    FallbackBackend fallback_;  // null while the GPU answers
    std::unique_ptr<SearchPass> pass_;
  };

  using SearchMethod = absl::Status (SegmentIndex::*)(const SearchBatch&, SearchResult&) const;
  absl::Status SearchBy(SearchMethod search, const SearchBatch& batch, SearchResult& result) const {
    absl::StatusOr<FallbackBackend> fallback =
        Run([&](const SegmentIndex& index) { return (index.*search)(batch, result); });
    if (!fallback.ok()) return fallback.status();
    if (*fallback != nullptr) result.SetFallback(*std::move(fallback));
    return absl::OkStatus();
  }

  // Runs one call on the GPU and, if that fails, on the CPU.
  //   call  absl::Status(const SegmentIndex&); must overwrite what a failed attempt left behind
  // Returns the fallback backend if the call ran on the CPU, else null. Errors: those of the CPU.
  template <class Call>
  absl::StatusOr<FallbackBackend> Run(const Call& call) const {
    FallbackBackend fallback = this->fallback();
    if (fallback == nullptr) {
      const absl::Status status = call(*gpu_);
      if (status.ok()) return nullptr;
      fallback = backend_.FallBackForBatch(status);
    }
    const auto cpu = CpuIndex();
    if (!cpu.ok()) return cpu.status();
    if (absl::Status status = call(**cpu); !status.ok()) return status;
    return fallback;
  }

  // The error of a search that waited for the CPU's index, which could not be made.
  static absl::Status ErrorOfSearch(const absl::Status& error) {
    if (base::ReasonOf(error) != base::ErrorReason::kDoesNotFit) return error;
    return base::Error(base::ErrorReason::kOutOfMemory, std::string(error.message()));
  }

  absl::StatusOr<const SegmentIndex*> CpuIndex() const {
    const std::lock_guard lock(cpu_mutex_);
    if (cpu_ == nullptr) {
      auto made = backend_.cpu().MakeResident(rows_);
      if (!made.ok()) return ErrorOfSearch(made.status());
      cpu_ = *std::move(made);
    }
    return cpu_.get();
  }

  FailoverBackend& backend_;  // outlives its segments
  const SegmentRows rows_;
  const std::shared_ptr<const SegmentIndex> gpu_;  // null for a segment on the CPU from the start
  const FallbackBackend fallback_;                 // null for a segment on the GPU
  mutable std::mutex cpu_mutex_;                   // guards cpu_, which is set once
  mutable std::shared_ptr<const SegmentIndex> cpu_;
};

absl::StatusOr<std::shared_ptr<const SegmentIndex>> FailoverBackend::MakeResident(
    const SegmentRows& rows) {
  if (FallbackBackend lost = fallback(); lost != nullptr) {
    return MakeResidentOnCpu(rows, std::move(lost));
  }
  auto resident = gpu_->MakeResident(rows);
  if (resident.ok()) {
    return std::make_shared<const FailoverIndex>(*this, rows, *std::move(resident));
  }
  const absl::Status& failed = resident.status();
  const std::string reason(failed.message());
  switch (failed.code()) {
    case absl::StatusCode::kUnavailable:
      return MakeResidentOnCpu(rows, FallBackForGood(failed));
    case absl::StatusCode::kResourceExhausted:
      if (when_full_ == WhenFull::kRefuse) {
        return base::Error(
            base::ErrorReason::kDoesNotFit,
            fmt::format("it does not fit on the GPU: {}; gpu.when_full = cpu would serve it from "
                        "the CPU",
                        reason));
      }
      return MakeResidentOnCpu(rows,
                               FallBack(FallbackCause::kDoesNotFit, failed,
                                        fmt::format("it does not fit on the GPU: {}", reason)));
    default:
      return MakeResidentOnCpu(rows,
                               FallBack(FallbackCause::kCallFailed, failed,
                                        fmt::format("the GPU failed to load it: {}", reason)));
  }
}

absl::StatusOr<std::shared_ptr<const SegmentIndex>> FailoverBackend::MakeResidentOnCpu(
    const SegmentRows& rows, FallbackBackend fallback) {
  auto cpu = cpu_->MakeResident(rows);
  if (!cpu.ok()) return cpu.status();
  return std::make_shared<const FailoverIndex>(*this, rows, *std::move(cpu), std::move(fallback));
}

}  // namespace

std::unique_ptr<Backend> MakeFailoverBackend(std::unique_ptr<Backend> gpu,
                                             std::unique_ptr<Backend> cpu, WhenFull when_full,
                                             GpuObserver observer) {
  return std::make_unique<FailoverBackend>(std::move(gpu), std::move(cpu), when_full,
                                           std::move(observer));
}

std::string WhyNotTried(std::span<const GpuFault> faults,
                        std::chrono::system_clock::time_point now) {
  std::vector<GpuFault> recent;
  std::ranges::copy_if(faults, std::back_inserter(recent), [now](const GpuFault& fault) {
    return fault.at <= now && now - fault.at < kGpuFaultsWindow;
  });
  if (recent.size() < kGpuFaultsMax) return {};
  std::ranges::sort(recent, {}, &GpuFault::at);
  // From this time on the window holds fewer faults than the maximum.
  const auto again = recent[recent.size() - kGpuFaultsMax].at + kGpuFaultsWindow;
  return fmt::format(
      "the GPU was lost {} times in the last {} minutes, the last time to {}; a start from "
      "{:%H:%M:%S} UTC tries it again",
      recent.size(), kGpuFaultsWindow.count(), recent.back().reason,
      fmt::gmtime(std::chrono::ceil<std::chrono::seconds>(again)));
}

}  // namespace simile::backend
