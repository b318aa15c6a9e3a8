#include "backend/fake_gpu.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <absl/strings/cord.h>

#include "backend/accelerator_plugin.h"
#include "backend/failover_backend.h"
#include "engine/fake_segment.h"

namespace simile::tests {
namespace {

absl::Status WithCode(absl::Status status, std::string_view code) {
  status.SetPayload(backend::kDeviceErrorPayload, absl::Cord({code.data(), code.size()}));
  return status;
}

// The device memory in use, by kind.
class FakeMemory {
 public:
  void Add(const std::string& kind, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    DeviceMemory& memory = OfKind(kind);
    memory.bytes += bytes;
    memory.peak_bytes = std::max(memory.peak_bytes, memory.bytes);
  }
  void Remove(const std::string& kind, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    OfKind(kind).bytes -= bytes;
  }
  std::vector<DeviceMemory> Read() const {
    const std::lock_guard lock(mutex_);
    return kinds_;
  }

 private:
  DeviceMemory& OfKind(const std::string& kind) {
    return *std::find_if(kinds_.begin(), kinds_.end(),
                         [&](const DeviceMemory& memory) { return memory.kind == kind; });
  }

  mutable std::mutex mutex_;
  std::vector<DeviceMemory> kinds_{{"rows-fp16", 0, 0}, {"rows-fp32", 0, 0}, {"workspace", 0, 0}};
};

std::uint64_t Fp16Bytes(std::size_t row_count, std::size_t dim) {
  return std::uint64_t{row_count} * dim * 2;
}

class FakeGpuIndex final : public SegmentIndex {
 public:
  FakeGpuIndex(FakeGpuControl& control, std::shared_ptr<FakeMemory> memory, const SegmentRows& rows)
      : control_(control),
        memory_(std::move(memory)),
        segment_(rows.rows, rows.first_row, rows.owner) {
    memory_->Add("rows-fp16", Fp16Bytes(row_count(), dim()));
    memory_->Add("rows-fp32", 2 * Fp16Bytes(row_count(), dim()));
  }
  ~FakeGpuIndex() override {
    memory_->Remove("rows-fp16", Fp16Bytes(row_count(), dim()));
    memory_->Remove("rows-fp32", 2 * Fp16Bytes(row_count(), dim()));
  }

  std::size_t row_count() const override { return segment_.row_count(); }
  std::size_t dim() const override { return segment_.dim(); }

  absl::Status Search(const SearchBatch& batch, SearchResult& result) const override {
    const absl::Status failed = control_.NextOutcome(FakeGpuControl::Call::kSearch);
    const bool is_wrong = absl::IsDataLoss(failed);
    if (!failed.ok() && !is_wrong) {
      // A failing device leaves a partial answer behind.
      result.Reset(batch.specs.size(), 1);
      if (!batch.specs.empty()) result.SetCount(0, 1);
      return failed;
    }
    absl::Status status = segment_.Search(batch, result);
    for (std::size_t i = 0; i < result.batch(); ++i) result.SetEngine(i, "cuda-fake");
    if (is_wrong) result.Buffer(0)[0].score += 1;
    return status;
  }

  absl::StatusOr<FallbackBackend> Score(MatrixView queries, std::span<const Row> rows,
                                        std::span<float> scores,
                                        DeviceTime* device_time) const override {
    if (absl::Status failed = control_.NextOutcome(FakeGpuControl::Call::kScore); !failed.ok()) {
      return failed;
    }
    return segment_.Score(queries, rows, scores, device_time);
  }

 private:
  FakeGpuControl& control_;
  const std::shared_ptr<FakeMemory> memory_;
  const engine::FakeSegment segment_;
};

class FakeGpu final : public Backend {
 public:
  FakeGpu(FakeGpuControl& control, std::string limitation)
      : control_(control), limitation_(std::move(limitation)) {
    memory_->Add("workspace", std::uint64_t{64} << 20);
  }

  const BackendInfo& info() const override { return info_; }
  std::string limitation() const override { return limitation_; }
  std::vector<DeviceMemory> device_memory() const override { return memory_->Read(); }
  ResidentPlan Plan(const SegmentShape& shape) const override {
    return {.device_bytes = 3 * Fp16Bytes(shape.row_count, shape.dim)};
  }
  absl::StatusOr<std::shared_ptr<const SegmentIndex>> MakeResident(
      const SegmentRows& rows) override {
    if (absl::Status failed = control_.NextOutcome(FakeGpuControl::Call::kLoad); !failed.ok()) {
      return failed;
    }
    return std::make_shared<const FakeGpuIndex>(control_, memory_, rows);
  }

 private:
  FakeGpuControl& control_;
  const std::string limitation_;
  const std::shared_ptr<FakeMemory> memory_ = std::make_shared<FakeMemory>();
  const BackendInfo info_{"gpu", "cuda-fake", "NVIDIA H200"};
};

}  // namespace

absl::Status GpuFull() {
  return absl::ResourceExhaustedError("300.0 MiB are needed and 12.0 MiB are free");
}

absl::Status GpuFailed() {
  return WithCode(absl::InternalError("cudaErrorInvalidValue at cudaMemcpyAsync: invalid argument"),
                  "1");
}

absl::Status GpuLate() {
  return absl::DeadlineExceededError("a batch was not finished after 2000 ms");
}

absl::Status GpuLost() {
  return WithCode(absl::UnavailableError("cudaErrorIllegalAddress at cudaEventQuery: an illegal "
                                         "memory access was encountered"),
                  "700");
}

absl::Status GpuWrong() { return absl::DataLossError(""); }

void FakeGpuControl::Next(Call call, absl::Status outcome) {
  const std::lock_guard lock(mutex_);
  next_[call].push_back(std::move(outcome));
}

void FakeGpuControl::ParseNext(Call call, std::string_view words) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(','), words.size());
    const std::string_view word = words.substr(0, end);
    Next(call, word == "full"     ? GpuFull()
               : word == "failed" ? GpuFailed()
               : word == "late"   ? GpuLate()
               : word == "lost"   ? GpuLost()
               : word == "wrong"  ? GpuWrong()
                                  : absl::OkStatus());
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}

void FakeGpuControl::Hold(Call call) {
  const std::lock_guard lock(mutex_);
  held_.insert(call);
}

void FakeGpuControl::AwaitHeld() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_ > 0; });
}

void FakeGpuControl::Release() {
  const std::lock_guard lock(mutex_);
  held_.clear();
  changed_.notify_all();
}

absl::Status FakeGpuControl::NextOutcome(Call call) {
  std::unique_lock lock(mutex_);
  ++calls_[call];
  if (held_.contains(call)) {
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !held_.contains(call); });
    --waiting_;
  }
  if (lost_) {
    ++calls_after_loss_;
    return GpuLost();
  }
  std::deque<absl::Status>& next = next_[call];
  if (next.empty()) return absl::OkStatus();
  absl::Status outcome = std::move(next.front());
  next.pop_front();
  lost_ = outcome.code() == absl::StatusCode::kUnavailable;
  return outcome;
}

void FakeGpuControl::Reset() {
  const std::lock_guard lock(mutex_);
  next_.clear();
  calls_.clear();
  lost_ = false;
  calls_after_loss_ = 0;
  held_.clear();
  changed_.notify_all();
}

int FakeGpuControl::calls(Call call) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(call);
  return found == calls_.end() ? 0 : found->second;
}

int FakeGpuControl::calls_after_loss() const {
  const std::lock_guard lock(mutex_);
  return calls_after_loss_;
}

std::unique_ptr<Backend> MakeFakeGpu(FakeGpuControl& control, std::string limitation) {
  return std::make_unique<FakeGpu>(control, std::move(limitation));
}

}  // namespace simile::tests
