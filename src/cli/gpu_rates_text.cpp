#include "cli/gpu_rates_text.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "cli/output_text.h"
#include "cli/table.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;

// `int8_scan_kept, finish in steps, copied, second gate at 1/8`
std::string PassText(const backend::GpuPassChoice& pass) {
  if (pass.variant.empty()) return "by the rules";
  std::string text =
      fmt::format("{}, finish in {}", pass.variant, backend::FinishText(pass.finish));
  text += pass.is_mapped ? ", mapped" : ", copied";
  if (pass.second_gate_share > 0) {
    text += fmt::format(", second gate at 1/{}", pass.second_gate_share);
  }
  if (pass.tile_factor != 1) text += fmt::format(", tiles {} times as long", pass.tile_factor);
  return text;
}

std::string MicrosecondsText(double seconds) { return fmt::format("{:.1f}", seconds * 1e6); }

// The passes that the card answers faster than by the rules.
std::string PassesTable(const app::GpuCollectionRates& rates, const Terminal& terminal) {
  Table table({{"queries up to", Align::kRight},
               {"hits up to", Align::kRight},
               {"us", Align::kRight},
               {"by the rules", Align::kRight},
               {"pass", Align::kLeft, true}});
  std::size_t faster = 0;
  for (const backend::GpuPassChoice& pass : rates.measured->choices.passes) {
    if (pass.seconds >= pass.rules_seconds) continue;
    table.AddRow({base::Grouped(pass.queries_max), base::Grouped(pass.hits_max),
                  MicrosecondsText(pass.seconds), MicrosecondsText(pass.rules_seconds),
                  PassText(pass)});
    ++faster;
  }
  const std::size_t measured = rates.measured->choices.passes.size();
  if (faster == 0) {
    return fmt::format("{}: the rules' pass is the fastest in each of {} classes of batches\n",
                       rates.name, measured);
  }
  return fmt::format("{}: passes that are faster than the rules' pass, in {} of {} classes\n{}",
                     rates.name, faster, measured, table.Render(terminal, 0));
}

}  // namespace

std::string GpuRatesText(const app::GpuRates& gpu, const Terminal& terminal) {
  if (gpu.device.empty()) {
    return gpu.why_not.empty() ? "" : fmt::format("no GPU is measured: {}\n\n", gpu.why_not);
  }
  std::string text = fmt::format("{}\n", Printable(gpu.device));
  for (const app::GpuCollectionRates& each : gpu.collections) {
    if (each.rates.empty()) {
      text += fmt::format("{} is not on the GPU: {}\n\n", each.name, each.why_not);
      continue;
    }
    Table table({{each.name + ", queries at once", Align::kRight},
                 {"queries/s", Align::kRight},
                 {"ms", Align::kRight},
                 {"engine"}});
    for (const app::GpuRate& rate : each.rates) {
      table.AddRow(
          {base::Grouped(rate.queries),
           base::Grouped(static_cast<std::uint64_t>(std::llround(rate.queries / rate.seconds))),
           fmt::format("{:.3f}", rate.seconds * 1e3), rate.engine});
    }
    text += table.Render(terminal, 0);
    if (each.measured) text += PassesTable(each, terminal);
    const unsigned sufficient = each.measured ? each.measured->choices.sufficient_batch : 0;
    text +=
        sufficient > 0
            ? fmt::format("a pass over {} takes {} queries from the next load on\n\n", each.name,
                          base::Grouped(sufficient))
            : fmt::format("passes over {} are as large as limits.batch_queries_max\n\n", each.name);
  }
  return text;
}

nlohmann::ordered_json GpuRatesJson(const app::GpuRates& gpu) {
  Json collections = Json::array();
  for (const app::GpuCollectionRates& each : gpu.collections) {
    Json rates = Json::array();
    for (const app::GpuRate& rate : each.rates) {
      rates.push_back(
          {{"queries", rate.queries}, {"seconds", rate.seconds}, {"engine", rate.engine}});
    }
    Json passes = Json::array();
    if (each.measured) {
      for (const backend::GpuPassChoice& pass : each.measured->choices.passes) {
        passes.push_back({{"queries_max", pass.queries_max},
                          {"hits_max", pass.hits_max},
                          {"pass", PassText(pass)},
                          {"seconds", pass.seconds},
                          {"rules_seconds", pass.rules_seconds}});
      }
    }
    collections.push_back(
        {{"name", each.name},
         {"rates", std::move(rates)},
         {"sufficient_batch", each.measured ? each.measured->choices.sufficient_batch : 0},
         {"passes", std::move(passes)},
         {"why_not", each.why_not}});
  }
  return {
      {"device", gpu.device}, {"why_not", gpu.why_not}, {"collections", std::move(collections)}};
}

}  // namespace simile::cli
