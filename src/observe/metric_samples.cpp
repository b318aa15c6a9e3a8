#include "observe/metric_samples.h"

#include <cassert>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace simile::observe {
namespace {

HistogramSample ToHistogramSample(const prometheus::ClientMetric::Histogram& histogram) {
  HistogramSample sample{histogram.sample_count, histogram.sample_sum, {}};
  sample.buckets.reserve(histogram.bucket.size());
  for (const auto& bucket : histogram.bucket) {
    sample.buckets.push_back({bucket.upper_bound, bucket.cumulative_count});
  }
  return sample;
}

std::variant<double, HistogramSample> ToSampleValue(const prometheus::ClientMetric& metric,
                                                    prometheus::MetricType type) {
  switch (type) {
    case prometheus::MetricType::Counter:
      return metric.counter.value;
    case prometheus::MetricType::Histogram:
      return ToHistogramSample(metric.histogram);
    default:
      assert(type == prometheus::MetricType::Gauge);
      return metric.gauge.value;
  }
}

}  // namespace

std::string FormatMetrics(
    const std::vector<std::shared_ptr<prometheus::Collectable>>& collectables) {
  std::string text;
  for (const auto& collectable : collectables) {
    text += prometheus::TextSerializer().Serialize(collectable->Collect());
  }
  return text;
}

std::vector<MetricSample> ReadMetrics(
    const std::vector<std::shared_ptr<prometheus::Collectable>>& collectables) {
  std::vector<MetricSample> samples;
  for (const auto& collectable : collectables) {
    for (const prometheus::MetricFamily& family : collectable->Collect()) {
      for (const prometheus::ClientMetric& metric : family.metric) {
        MetricSample& sample = samples.emplace_back();
        sample.name = family.name;
        for (const auto& label : metric.label) sample.labels.emplace_back(label.name, label.value);
        sample.value = ToSampleValue(metric, family.type);
      }
    }
  }
  return samples;
}

}  // namespace simile::observe
