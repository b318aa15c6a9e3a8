#include "cli/tune_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/tuning/gpu_rates.h"
#include "app/tuning/tuning.h"
#include "base/message_text.h"
#include "cli/config_command.h"
#include "cli/output_text.h"
#include "cli/table.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;
using app::ThreadsConclusion;
using app::TimedWorkload;
using app::TuneReport;
using backend::cpu::TuningValue;
using backend::cpu::TuningValues;

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

// The passes that are faster than the passes that the rules choose.
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

// For each collection: its rates by batch, and the passes that its load chose. Empty if the
// configuration asks for no GPU.
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

Json GpuRatesJson(const app::GpuRates& gpu) {
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

// The texts of a conclusion: its name in JSON, and why the number of threads stays.
struct ConclusionWords {
  const char* name;
  const char* reason;
};
ConclusionWords ToWords(ThreadsConclusion conclusion) {
  switch (conclusion) {
    case ThreadsConclusion::kChanged:
      return {"changed", ""};
    case ThreadsConclusion::kNoneBetter:
      return {"none_better", "no other is clearly better"};
    case ThreadsConclusion::kNoChoice:
      return {"no_choice", "backend.threads or the machine leaves no choice"};
    case ThreadsConclusion::kBusy:
      return {"busy", "the machine is busy"};
    case ThreadsConclusion::kNoTime:
      return {"no_time", "other numbers had no time; give a longer --duration"};
  }
  return {"", ""};
}

// Says how many threads search, and why.
std::string ThreadsText(const TuneReport& report) {
  const app::BetterTuning& tuning = report.tuning;
  if (tuning.is_changed()) {
    return fmt::format(
        "{} search instead of {}\n{} answers compared before and after: the same bits\n",
        base::Counted(tuning.threads_after, "thread"), base::Grouped(tuning.threads_before),
        base::Grouped(report.answers_compared));
  }
  std::string text =
      fmt::format("the number of threads stays: {}\n", ToWords(tuning.conclusion).reason);
  if (tuning.is_busy()) {
    fmt::format_to(
        std::back_inserter(text),
        "  other programs took {:.0f} % of the processors; measure again when they rest\n",
        100 * tuning.other_load);
  }
  return text;
}

// The rise in the rate of queries, as a share of the rate before.
double RateGain(const TimedWorkload& each) { return each.before_s / each.after_s - 1; }

std::string RateText(const TimedWorkload& each, double seconds) {
  if (seconds <= 0) return "-";
  const double rate = static_cast<double>(each.workload.batch) / seconds;
  return base::Grouped(static_cast<std::uint64_t>(rate));
}

std::string MillisecondsText(double seconds) {
  return seconds > 0 ? fmt::format("{:.3f}", seconds * 1e3) : "-";
}

// Every kind of search, with its gain if the number of threads changes.
std::string SearchesTable(const TuneReport& report, const Terminal& terminal) {
  const bool changed = report.tuning.is_changed();
  Table table({{"search", Align::kLeft, true},
               {"queries/s", Align::kRight},
               {"ms", Align::kRight},
               {changed ? "queries/s before" : "", Align::kRight},
               {changed ? "gain" : "", Align::kRight}});
  for (const TimedWorkload& each : report.tuning.workloads) {
    table.AddRow({app::WorkloadText(each.workload, report.collections),
                  RateText(each, each.after_s), MillisecondsText(each.after_s),
                  changed ? RateText(each, each.before_s) : "",
                  changed ? fmt::format("{:+.1f} %", 100 * RateGain(each)) : ""});
  }
  return table.Render(terminal, 0);
}

// The batch size that suffices for every collection. 0 on a busy machine, where rates of different
// batches cannot be compared.
std::size_t FindSufficientBatch(const TuneReport& report) {
  std::size_t sufficient = 0;
  if (report.tuning.is_busy()) return sufficient;
  for (std::size_t i = 0; i < report.collections.size(); ++i) {
    sufficient = std::max(sufficient, app::SufficientBatch(report.tuning.workloads, i));
  }
  return sufficient;
}

std::string BatchText(const TuneReport& report, std::uint32_t batch_queries_max) {
  const std::size_t sufficient = FindSufficientBatch(report);
  if (sufficient == 0) return "";
  return fmt::format(
      "limits.batch_queries_max is {}: batches of {} reach {:.0f} % of the best rate\n",
      base::Grouped(batch_queries_max), base::Grouped(sufficient), 100 * app::kSufficientShare);
}

std::string WrittenText(const TuneReport& report, const TuneSetting& setting) {
  if (setting.output.empty()) return "nothing was written (--dry-run)\n";
  const std::string file = setting.output.string();
  if (!report.written) return fmt::format("{} holds all of it already\n", Printable(file));
  const std::string serve = setting.threads > 0
                                ? fmt::format("simile serve --threads {}", setting.threads)
                                : "simile serve";
  const std::string wrote = fmt::format("wrote {}\n", Printable(file));
  if (setting.cache_origin.empty()) {
    return fmt::format(
        "{}  serve starts with it where backend.tuning_cache names it:\n"
        "  SIMILE_BACKEND_TUNING_CACHE={} {} ...\n",
        wrote, ShellWord(file), serve);
  }
  const std::string whose =
      setting.cache_origin.starts_with("default")
          ? "of this user here"
          : fmt::format("with this backend.tuning_cache ({})", Printable(setting.cache_origin));
  return fmt::format("{}  each `{}` {}\n  starts with it{}\n", wrote, serve, whose,
                     report.tuning.is_changed() ? "; restart those that run" : "");
}

Json SecondsJson(double seconds) { return seconds > 0 ? Json(seconds) : Json(nullptr); }

}  // namespace

std::string TuneText(const TuneReport& report, const TuneSetting& setting,
                     const Terminal& terminal) {
  std::string text = fmt::format("{}, {}, {}\n", Printable(report.key.cpu),
                                 base::Counted(report.key.threads, "thread"), report.key.kernels);
  for (const app::TunedShape& each : report.collections) {
    fmt::format_to(
        std::back_inserter(text), "{}: {} x {}{}\n", each.name,
        base::Counted(each.rows_total, "vector"), each.dim,
        each.row_count < each.rows_total
            ? fmt::format(", of which the first {} were measured", base::Grouped(each.row_count))
            : "");
  }
  text += '\n' + GpuRatesText(report.gpu, terminal);
  text += SearchesTable(report, terminal) + '\n';
  text += TuningTable(report.in_force, terminal) + '\n' + ThreadsText(report);
  return text + BatchText(report, setting.batch_queries_max) + WrittenText(report, setting);
}

std::string TuneJson(const TuneReport& report, const TuneSetting& setting) {
  Json collections = Json::array();
  for (const app::TunedShape& each : report.collections) {
    collections.push_back({{"name", each.name},
                           {"rows", each.rows_total},
                           {"dim", each.dim},
                           {"measured_rows", each.row_count}});
  }
  Json parameters = Json::array();
  for (std::size_t i = 0; i < TuningValues().size(); ++i) {
    const TuningValue& value = TuningValues()[i];
    parameters.push_back({{"name", value.name},
                          {"unit", value.unit},
                          {"value", report.in_force.tuning.*value.value},
                          {"origin", report.in_force.origins[i]}});
  }
  Json searches = Json::array();
  for (const TimedWorkload& each : report.tuning.workloads) {
    searches.push_back({{"collection", report.collections[each.workload.collection].name},
                        {"batch", each.workload.batch},
                        {"rows_for_one", each.workload.rows_for_one},
                        {"before_s", SecondsJson(each.before_s)},
                        {"after_s", SecondsJson(each.after_s)},
                        {"gain", nullptr}});
    if (report.tuning.is_changed()) searches.back()["gain"] = RateGain(each);
  }
  const std::size_t sufficient = FindSufficientBatch(report);
  Json json = {
      {"machine",
       {{"cpu", report.key.cpu}, {"threads", report.key.threads}, {"kernels", report.key.kernels}}},
      {"collections", std::move(collections)},
      {"threads",
       {{"before", report.tuning.threads_before},
        {"after", report.tuning.threads_after},
        {"conclusion", ToWords(report.tuning.conclusion).name}}},
      {"parameters", std::move(parameters)},
      {"searches", std::move(searches)},
      {"gpu", GpuRatesJson(report.gpu)},
      {"answers_compared", report.answers_compared},
      {"other_load", report.tuning.other_load},
      {"batch_queries_max", {{"now", setting.batch_queries_max}, {"sufficient", nullptr}}},
      {"file", nullptr}};
  if (sufficient > 0) json["batch_queries_max"]["sufficient"] = sufficient;
  if (report.written) json["file"] = setting.output.string();
  return JsonLine(json);
}

}  // namespace simile::cli
