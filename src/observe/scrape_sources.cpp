#include "observe/scrape_sources.h"

#include <utility>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

namespace simile::observe {
namespace {

prometheus::MetricFamily MakeGaugeFamily(std::string name, std::string what) {
  prometheus::MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(what);
  family.type = prometheus::MetricType::Gauge;
  return family;
}

void AddGauge(prometheus::MetricFamily& family, double value,
              std::vector<prometheus::ClientMetric::Label> labels = {}) {
  prometheus::ClientMetric metric;
  metric.gauge.value = value;
  metric.label = std::move(labels);
  family.metric.push_back(std::move(metric));
}

void AddDeviceMemory(const std::vector<DeviceMemory>& kinds,
                     std::vector<prometheus::MetricFamily>& families) {
  if (kinds.empty()) return;
  prometheus::MetricFamily now =
      MakeGaugeFamily("simile_gpu_memory_bytes", "Device memory in use, by purpose.");
  prometheus::MetricFamily peak = MakeGaugeFamily(
      "simile_gpu_memory_peak_bytes", "The most device memory in use since start, by purpose.");
  for (const DeviceMemory& memory : kinds) {
    AddGauge(now, static_cast<double>(memory.bytes), {{"kind", memory.kind}});
    AddGauge(peak, static_cast<double>(memory.peak_bytes), {{"kind", memory.kind}});
  }
  families.push_back(std::move(now));
  families.push_back(std::move(peak));
}

void AddOthers(const std::vector<ScrapedMetric>& scraped,
               std::vector<prometheus::MetricFamily>& families) {
  for (const ScrapedMetric& reading : scraped) {
    if (families.empty() || families.back().name != reading.name) {
      families.push_back(MakeGaugeFamily(reading.name, reading.help));
      if (reading.is_counter) families.back().type = prometheus::MetricType::Counter;
    }
    prometheus::ClientMetric& metric = families.back().metric.emplace_back();
    (reading.is_counter ? metric.counter.value : metric.gauge.value) = reading.value;
    for (const auto& [name, value] : reading.labels) metric.label.push_back({name, value});
  }
}

class ScrapeCollector final : public prometheus::Collectable {
 public:
  explicit ScrapeCollector(ScrapeSources sources) : sources_(std::move(sources)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<prometheus::MetricFamily> families;
    if (sources_.connections_open) {
      AddGauge(families.emplace_back(
                   MakeGaugeFamily("simile_connections", "Client connections by state.")),
               static_cast<double>(sources_.connections_open()), {{"state", "open"}});
    }
    if (sources_.collections) {
      prometheus::MetricFamily rows =
          MakeGaugeFamily("simile_rows", "Rows of the serving snapshot.");
      prometheus::MetricFamily loaded =
          MakeGaugeFamily("simile_snapshot_loaded_timestamp_seconds",
                          "When the serving snapshot was loaded, Unix time.");
      prometheus::MetricFamily successful = MakeGaugeFamily(
          "simile_last_load_successful", "1, or 0 when the last load, reload or rollback failed.");
      prometheus::MetricFamily bytes =
          MakeGaugeFamily("simile_collection_bytes", "Memory of the serving snapshot, by part.");
      prometheus::MetricFamily unfit =
          MakeGaugeFamily("simile_unfit_values",
                          "Values that do not fit their payload field's type and pass no filter.");
      for (const CollectionReading& reading : sources_.collections()) {
        AddGauge(successful, reading.last_load_failed ? 0 : 1, {{"collection", reading.name}});
        if (!reading.serves) continue;
        const std::chrono::duration<double> since_epoch = reading.loaded_at.time_since_epoch();
        AddGauge(rows, static_cast<double>(reading.row_count), {{"collection", reading.name}});
        AddGauge(loaded, since_epoch.count(), {{"collection", reading.name}});
        for (const auto& [part, part_bytes] : reading.bytes) {
          AddGauge(bytes, static_cast<double>(part_bytes),
                   {{"collection", reading.name}, {"part", std::string(part)}});
        }
        for (const auto& [field, values] : reading.unfit_values) {
          AddGauge(unfit, static_cast<double>(values),
                   {{"collection", reading.name}, {"field", field}});
        }
      }
      families.push_back(std::move(rows));
      families.push_back(std::move(loaded));
      families.push_back(std::move(successful));
      families.push_back(std::move(bytes));
      families.push_back(std::move(unfit));
    }
    if (sources_.device_memory) AddDeviceMemory(sources_.device_memory(), families);
    if (sources_.others) AddOthers(sources_.others(), families);
    return families;
  }

 private:
  const ScrapeSources sources_;
};

}  // namespace

std::shared_ptr<prometheus::Collectable> MakeScrapeCollector(ScrapeSources sources) {
  return std::make_shared<ScrapeCollector>(std::move(sources));
}

}  // namespace simile::observe
