#include "backend/failover_backend.h"

#include <charconv>
#include <mutex>
#include <utility>

#include <absl/strings/cord.h>
#include <fmt/format.h>

#include "backend/cuda/plugin.h"

namespace simile::backend {
namespace {

std::optional<int> CudaErrorOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kCudaErrorPayload);
  if (!payload) return std::nullopt;
  const std::string digits(*payload);
  int code = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code);
  if (error != std::errc()) return std::nullopt;
  return code;
}

class FailoverBackend final : public Backend {
 public:
  FailoverBackend(std::unique_ptr<Backend> gpu, std::unique_ptr<Backend> cpu, WhenFull when_full,
                  GpuObserver observer)
      : gpu_(std::move(gpu)),
        cpu_(std::move(cpu)),
        when_full_(when_full),
        observer_(std::move(observer)) {}

  const BackendInfo& info() const override { return gpu_->info(); }

  StandIn stand_in() const override {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

  std::vector<DeviceMemory> device_memory() const override { return gpu_->device_memory(); }

  ResidentPlan Plan(const SegmentShape& shape) const override {
    ResidentPlan plan = cpu_->Plan(shape);
    if (stand_in() != nullptr) return plan;
    const ResidentPlan gpu_plan = gpu_->Plan(shape);
    plan.host_bytes += gpu_plan.host_bytes;
    plan.device_bytes += gpu_plan.device_bytes;
    return plan;
  }

  absl::StatusOr<std::shared_ptr<const SegmentIndex>> MakeResident(
      const SegmentRows& rows) override;

  // For its segments

  Backend& gpu() const { return *gpu_; }
  Backend& cpu() const { return *cpu_; }
  // The CPU takes over what failed so: who it is and why.
  StandIn TakeOver(const absl::Status& failed) {
    const std::string words(failed.message());
    switch (failed.code()) {
      case absl::StatusCode::kUnavailable:
        return LoseDevice(failed);
      case absl::StatusCode::kResourceExhausted:
        return TakeOver(GpuEvent::Kind::kOutOfMemory, failed,
                        fmt::format("the GPU had no room for this batch: {}", words));
      default:
        return TakeOver(GpuEvent::Kind::kCallFailed, failed,
                        fmt::format("the GPU failed at this batch: {}", words));
    }
  }

 private:
  StandIn TakeOver(GpuEvent::Kind kind, const absl::Status& failed, std::string reason) const {
    Tell(kind, failed);
    return Cpu(std::move(reason));
  }

  StandIn LoseDevice(const absl::Status& failed) {
    {
      const std::lock_guard lock(mutex_);
      if (lost_ != nullptr) return lost_;
      lost_ = Cpu(fmt::format("the GPU was lost and is left alone until a restart: {}",
                              std::string(failed.message())));
    }
    Tell(GpuEvent::Kind::kDeviceLost, failed);
    return stand_in();
  }

  StandIn Cpu(std::string reason) const {
    return std::make_shared<const ServedBy>(ServedBy{cpu_->info(), std::move(reason)});
  }

  void Tell(GpuEvent::Kind kind, const absl::Status& failed) const {
    if (observer_) observer_({kind, CudaErrorOf(failed), std::string(failed.message())});
  }

  absl::StatusOr<std::shared_ptr<const SegmentIndex>> Admit(const SegmentRows& rows,
                                                            StandIn stand_in);

  const std::unique_ptr<Backend> gpu_;
  const std::unique_ptr<Backend> cpu_;
  const WhenFull when_full_;
  const GpuObserver observer_;
  mutable std::mutex mutex_;  // guards lost_
  StandIn lost_;              // set once, when the device is lost
};

// One segment on the GPU, on the CPU, or on both. Search may be called from several threads.
class FailoverIndex final : public SegmentIndex {
 public:
  FailoverIndex(FailoverBackend& backend, SegmentRows rows, std::shared_ptr<const SegmentIndex> gpu)
      : backend_(backend), rows_(std::move(rows)), gpu_(std::move(gpu)) {}
  //   stand_in  why it is on the CPU from the start
  FailoverIndex(FailoverBackend& backend, SegmentRows rows, std::shared_ptr<const SegmentIndex> cpu,
                StandIn stand_in)
      : backend_(backend),
        rows_(std::move(rows)),
        admitted_(std::move(stand_in)),
        cpu_(std::move(cpu)) {}

  std::size_t row_count() const override { return rows_.rows.row_count(); }
  std::size_t dim() const override { return rows_.rows.dim(); }

  absl::StatusOr<double> Built() const override {
    if (stand_in() == nullptr) return gpu_->Built();
    const std::lock_guard lock(cpu_mutex_);
    return cpu_ == nullptr ? 0.0 : cpu_->Built();
  }

  StandIn stand_in() const override {
    return admitted_ != nullptr ? admitted_ : backend_.stand_in();
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
    StandIn stand_in;
    absl::Status status =
        Ask([&](const SegmentIndex& index) { return index.Search(batch, result); }, stand_in);
    if (status.ok() && stand_in != nullptr) result.SetStandIn(std::move(stand_in));
    return status;
  }

  absl::Status Score(MatrixView queries, std::span<const Row> rows,
                     std::span<float> scores) const override {
    StandIn stand_in;
    return ScoreAndTell(queries, rows, scores, stand_in);
  }

  absl::Status ScoreAndTell(MatrixView queries, std::span<const Row> rows, std::span<float> scores,
                            StandIn& stand_in) const override {
    return Ask([&](const SegmentIndex& index) { return index.Score(queries, rows, scores); },
               stand_in);
  }

 private:
  // Puts the question to the GPU and, where it does not answer, to the CPU.
  //   question  absl::Status(const SegmentIndex&); overwrites whatever an earlier try left
  //   stand_in  null when the GPU has answered
  template <class Question>
  absl::Status Ask(const Question& question, StandIn& stand_in) const {
    stand_in = this->stand_in();
    if (stand_in == nullptr) {
      absl::Status status = question(*gpu_);
      if (status.ok()) return status;
      stand_in = backend_.TakeOver(status);
    }
    const auto cpu = CpuIndex();
    if (!cpu.ok()) return cpu.status();
    return question(**cpu);
  }

  absl::StatusOr<const SegmentIndex*> CpuIndex() const {
    const std::lock_guard lock(cpu_mutex_);
    if (cpu_ == nullptr) {
      auto made = backend_.cpu().MakeResident(rows_);
      if (!made.ok()) return made.status();
      cpu_ = *std::move(made);
    }
    return cpu_.get();
  }

  FailoverBackend& backend_;  // outlives its segments
  const SegmentRows rows_;
  const std::shared_ptr<const SegmentIndex> gpu_;  // null for a segment on the CPU from the start
  const StandIn admitted_;                         // null for one on the GPU
  mutable std::mutex cpu_mutex_;                   // guards cpu_, which is never unset
  mutable std::shared_ptr<const SegmentIndex> cpu_;
};

absl::StatusOr<std::shared_ptr<const SegmentIndex>> FailoverBackend::MakeResident(
    const SegmentRows& rows) {
  if (StandIn lost = stand_in(); lost != nullptr) return Admit(rows, std::move(lost));
  auto resident = gpu_->MakeResident(rows);
  if (resident.ok()) {
    return std::make_shared<const FailoverIndex>(*this, rows, *std::move(resident));
  }
  const absl::Status& failed = resident.status();
  const std::string words(failed.message());
  switch (failed.code()) {
    case absl::StatusCode::kUnavailable:
      return Admit(rows, LoseDevice(failed));
    case absl::StatusCode::kResourceExhausted:
      if (when_full_ == WhenFull::kRefuse) {
        return absl::ResourceExhaustedError(
            fmt::format("it does not fit on the GPU: {}; gpu.when_full = cpu would serve it from "
                        "the CPU",
                        words));
      }
      return Admit(rows, TakeOver(GpuEvent::Kind::kDoesNotFit, failed,
                                  fmt::format("it does not fit on the GPU: {}", words)));
    default:
      return Admit(rows, TakeOver(GpuEvent::Kind::kCallFailed, failed,
                                  fmt::format("the GPU failed at taking it in: {}", words)));
  }
}

absl::StatusOr<std::shared_ptr<const SegmentIndex>> FailoverBackend::Admit(const SegmentRows& rows,
                                                                           StandIn stand_in) {
  auto cpu = cpu_->MakeResident(rows);
  if (!cpu.ok()) return cpu.status();
  return std::make_shared<const FailoverIndex>(*this, rows, *std::move(cpu), std::move(stand_in));
}

}  // namespace

std::unique_ptr<Backend> MakeFailoverBackend(std::unique_ptr<Backend> gpu,
                                             std::unique_ptr<Backend> cpu, WhenFull when_full,
                                             GpuObserver observer) {
  return std::make_unique<FailoverBackend>(std::move(gpu), std::move(cpu), when_full,
                                           std::move(observer));
}

}  // namespace simile::backend
