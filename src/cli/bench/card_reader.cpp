#include "cli/bench/card_reader.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "backend/nvml.h"
#include "cli/metric_label.h"

namespace simile::cli::bench {
namespace {

using backend::Nvml;

// The number of the card on which one of the processes computes.
absl::StatusOr<unsigned> CardOf(const Nvml& nvml, const std::vector<pid_t>& processes) {
  const absl::StatusOr<unsigned> count = nvml.CountDevices();
  if (!count.ok()) return count.status();
  for (unsigned card = 0; card < *count; ++card) {
    const absl::StatusOr<std::vector<unsigned>> on_card = nvml.ProcessesOn(card);
    if (!on_card.ok()) continue;
    for (const pid_t process : processes) {
      if (std::ranges::find(*on_card, static_cast<unsigned>(process)) != on_card->end()) {
        return card;
      }
    }
  }
  if (*count == 1) return 0U;  // processes of containers have other numbers there
  return absl::NotFoundError(
      fmt::format("on none of this machine's {} cards a process of the server computes", *count));
}

// Keeps the library and the card's number from one reading to the next.
class ProcessesReader {
 public:
  ProcessesReader(std::vector<pid_t> processes, std::string library)
      : processes_(std::move(processes)), library_(std::move(library)) {}

  absl::StatusOr<CardReading> Read() {
    if (processes_.empty()) {
      return absl::NotFoundError("no process of the server is known on this machine");
    }
    if (nvml_ == nullptr) {
      absl::StatusOr<std::unique_ptr<Nvml>> opened = Nvml::Open(library_);
      if (!opened.ok()) return opened.status();
      const absl::StatusOr<unsigned> card = CardOf(**opened, processes_);
      if (!card.ok()) return card.status();
      nvml_ = *std::move(opened);
      card_ = *card;
    }
    absl::StatusOr<backend::GpuReading> reading = nvml_->Read(card_);
    if (!reading.ok()) return reading.status();
    return CardReading{reading->name.empty() ? fmt::format("GPU {}", card_) : reading->name,
                       reading->utilization_ratio, reading->memory_used_bytes,
                       reading->memory_total_bytes};
  }

 private:
  const std::vector<pid_t> processes_;
  const std::string library_;
  std::unique_ptr<Nvml> nvml_;
  unsigned card_ = 0;
};

std::optional<std::uint64_t> BytesOf(const v1::MetricValue& metric) {
  return static_cast<std::uint64_t>(metric.number());
}

}  // namespace

CardReader ReaderOfProcesses(std::vector<pid_t> processes, std::string nvml) {
  auto reader = std::make_shared<ProcessesReader>(std::move(processes), std::move(nvml));
  return [reader] { return reader->Read(); };
}

CardReader ReaderOfMetrics(ReadStats stats) {
  return [stats = std::move(stats)]() -> absl::StatusOr<CardReading> {
    const absl::StatusOr<v1::GetStatsResponse> answer = stats();
    if (!answer.ok()) return answer.status();
    CardReading reading;
    for (const v1::MetricValue& metric : answer->metrics()) {
      if (metric.name() == "simile_gpu_utilization_ratio") {
        reading.utilization_ratio = metric.number();
      } else if (metric.name() == "simile_gpu_device_memory_used_bytes") {
        reading.memory_used_bytes = BytesOf(metric);
      } else if (metric.name() == "simile_gpu_device_memory_total_bytes") {
        reading.memory_total_bytes = BytesOf(metric);
      } else {
        continue;
      }
      reading.name = fmt::format("GPU {}", LabelOf(metric, "gpu"));
    }
    if (reading.name.empty()) return absl::NotFoundError("the server's metrics describe no card");
    return reading;
  };
}

CardReader FirstReaderOf(CardReader first, CardReader second) {
  auto chosen = std::make_shared<CardReader>();
  return [chosen, first = std::move(first),
          second = std::move(second)]() -> absl::StatusOr<CardReading> {
    if (*chosen) return (*chosen)();
    absl::StatusOr<CardReading> reading = first();
    if (reading.ok()) {
      *chosen = first;
      return reading;
    }
    const std::string reason(reading.status().message());
    reading = second();
    if (reading.ok()) {
      *chosen = second;
      return reading;
    }
    return absl::Status(reading.status().code(),
                        fmt::format("{}; {}", reason, std::string(reading.status().message())));
  };
}

}  // namespace simile::cli::bench
