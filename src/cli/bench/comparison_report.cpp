#include "cli/bench/comparison_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/table.h"

namespace simile::cli::bench {
namespace {

nlohmann::ordered_json TimesJson(const ComparedTimes& times) {
  return {{"call_time_ms", times.call_ms}, {"compute_time_ms", times.compute_ms}};
}

std::string TimeText(double ms) { return fmt::format("{:.3f}", ms); }

// "gpu"
std::string KindOf(const std::string& backend) { return backend.substr(0, backend.find(':')); }

}  // namespace

nlohmann::ordered_json ComparisonJson(const Comparison& comparison) {
  nlohmann::ordered_json json{
      {"collection", comparison.collection},
      {"rows", comparison.rows},
      {"dim", comparison.dim},
      {"k", comparison.k},
      {"measured",
       {{"backend", comparison.measured_backend}, {"device", comparison.measured_device}}},
      {"other", {{"backend", comparison.other_backend}, {"device", comparison.other_device}}},
      {"answers_compared", comparison.answers},
      {"batches", nlohmann::ordered_json::array()}};
  for (const ComparedBatch& batch : comparison.batches) {
    json["batches"].push_back({{"queries", batch.queries},
                               {"calls", batch.calls},
                               {"measured", TimesJson(batch.measured)},
                               {"other", TimesJson(batch.other)},
                               {"times_faster", batch.times_faster()}});
  }
  return json;
}

std::string ComparisonText(const Comparison& comparison, const Terminal& terminal) {
  const std::string measured = KindOf(comparison.measured_backend);
  std::string other = KindOf(comparison.other_backend);
  if (measured == other) other = "other";
  const std::string text = fmt::format(
      "{}, {} x {}, k {}\n  {} on {}\n  {} on {}\n\n", Bold(comparison.collection, terminal),
      base::Grouped(comparison.rows), comparison.dim, comparison.k, comparison.measured_backend,
      comparison.measured_device, comparison.other_backend, comparison.other_device);
  Table table({{"queries a call", Align::kRight},
               {other + ", ms", Align::kRight},
               {measured + ", ms", Align::kRight},
               {"times faster", Align::kRight},
               {other + " computes, ms", Align::kRight},
               {measured + " computes, ms", Align::kRight}});
  for (const ComparedBatch& batch : comparison.batches) {
    table.AddRow({base::Grouped(batch.queries), TimeText(batch.other.call_ms),
                  TimeText(batch.measured.call_ms), fmt::format("{:.1f}", batch.times_faster()),
                  TimeText(batch.other.compute_ms), TimeText(batch.measured.compute_ms)});
  }
  return text + table.Render(terminal, 0) +
         fmt::format("\n{} compared, all equal to the bit; medians of whole calls, one at a time\n",
                     base::Counted(comparison.answers, "answer"));
}

}  // namespace simile::cli::bench
