#include "cli/tune_command.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <absl/strings/str_cat.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/config_read.h"
#include "app/settings.h"
#include "app/tuning.h"
#include "base/message_text.h"
#include "cli/commands.h"
#include "cli/display_text.h"
#include "cli/exit_code.h"
#include "cli/interrupt_message.h"
#include "cli/json_line.h"
#include "cli/named_folder.h"
#include "cli/progress_bar.h"
#include "cli/table.h"
#include "cli/time_text.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;
using app::BatchRate;
using app::BetterTuning;
using app::TuneConclusion;
using app::TunedParameter;
using app::TunedWorkload;
using app::TuneReport;
using backend::cpu::RatioRange;

constexpr std::chrono::seconds kShortestTune{1};
constexpr std::chrono::seconds kLongestTune{300};

struct TuneFlags {
  std::vector<std::string> collections;
  std::optional<std::string> config;
  std::optional<std::string> threads;
  std::optional<std::string> duration;
  std::optional<std::uint32_t> k;
  std::optional<std::uint32_t> batch;
  std::optional<std::string> output;
  bool dry_run = false;
  bool json = false;
};

// A bar on a terminal while the measurements run.
class TuneProgressBar {
 public:
  TuneProgressBar() : bar_([this] { return Line(); }) {}

  void Set(double share, const std::string& what) {
    const std::lock_guard lock(mutex_);
    share_ = share;
    what_ = what;
  }

 private:
  std::string Line() {
    constexpr std::size_t kWidth = 20;
    const std::lock_guard lock(mutex_);
    return fmt::format("measuring {}  {}", BarText(share_, kWidth), what_);
  }

  std::mutex mutex_;  // guards what follows, which the bar's thread reads
  double share_ = 0;
  std::string what_;
  ProgressBar bar_;  // destroyed first
};

// A ratio of times as a gain of the rate.
double GainOf(double time_ratio) { return 1 / time_ratio - 1; }

// `+4.1 % (+3.2 to +5.0)`: the median, and the interval that holds the true one.
std::string GainText(const RatioRange& ratio) {
  return fmt::format("{:+.1f} % ({:+.1f} to {:+.1f})", 100 * GainOf(ratio.median),
                     100 * GainOf(ratio.high), 100 * GainOf(ratio.low));
}

const char* TextOf(TuneConclusion conclusion) {
  switch (conclusion) {
    case TuneConclusion::kChanged:
      return "changed";
    case TuneConclusion::kNoneBetter:
      return "no other is clearly better";
    case TuneConclusion::kNoChoice:
      return "changes nothing here";
    case TuneConclusion::kFixed:
      return "set by backend.threads";
    case TuneConclusion::kBusy:
      return "seems better, but the machine is busy";
    case TuneConclusion::kWithdrawn:
      return "left alone: a loss elsewhere";
    case TuneConclusion::kNoTime:
      return "not measured in the time";
  }
  return "";
}

const char* NameOf(TuneConclusion conclusion) {
  switch (conclusion) {
    case TuneConclusion::kChanged:
      return "changed";
    case TuneConclusion::kNoneBetter:
      return "none_better";
    case TuneConclusion::kNoChoice:
      return "no_choice";
    case TuneConclusion::kFixed:
      return "fixed";
    case TuneConclusion::kBusy:
      return "busy";
    case TuneConclusion::kWithdrawn:
      return "withdrawn";
    case TuneConclusion::kNoTime:
      return "no_time";
  }
  return "";
}

std::string ValueText(const TunedParameter& parameter, std::size_t number) {
  return parameter.value != nullptr ? app::TuningText(*parameter.value, number)
                                    : base::Grouped(number);
}

std::string ParametersTable(const TuneReport& report, const Terminal& terminal) {
  Table table({{"parameter"},
               {"before", Align::kRight},
               {"after", Align::kRight},
               {"gain of queries/s", Align::kLeft, true}});
  for (const TunedParameter& parameter : report.tuning.parameters) {
    const std::string gain =
        parameter.ratio ? fmt::format("{}: {}", GainText(*parameter.ratio),
                                      app::WorkloadText(parameter.workload, report.collections))
                        : TextOf(parameter.conclusion);
    table.AddRow({parameter.name(), ValueText(parameter, parameter.before),
                  ValueText(parameter, parameter.after), gain});
  }
  return table.Render(terminal, 0);
}

std::string RateText(const TunedWorkload& each, double seconds) {
  if (seconds <= 0) return "-";
  const double rate = static_cast<double>(each.workload.batch) / seconds;
  return base::Grouped(static_cast<std::uint64_t>(rate));
}

std::string SearchesTable(const TuneReport& report, bool changed, const Terminal& terminal) {
  Table table({{"search", Align::kLeft, true},
               {changed ? "queries/s before" : "queries/s", Align::kRight},
               {changed ? "after" : "", Align::kRight},
               {changed ? "gain" : ""}});
  for (const TunedWorkload& each : report.tuning.workloads) {
    const std::string name = app::WorkloadText(each.workload, report.collections);
    if (!changed) {
      table.AddRow({name, RateText(each, each.before_s), "", ""});
    } else {
      table.AddRow({name, RateText(each, each.before_s), RateText(each, each.after_s),
                    each.ratio ? GainText(*each.ratio) : "not measured in the time"});
    }
  }
  return table.Render(terminal, 0);
}

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

// Of each collection the rates by batch, and the passes that its load chose.
std::string GpuText(const app::GpuRates& gpu, const Terminal& terminal) {
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

// The batch that suffices for every collection, and for which one it must be so large; nothing from
// a busy machine.
struct BatchAdvice : app::SufficientRate {
  std::string collection;
};
std::optional<BatchAdvice> AdviceOf(const TuneReport& report) {
  std::optional<BatchAdvice> advice;
  // Rates of different batches were not measured at the same moment.
  if (report.tuning.is_busy()) return advice;
  for (std::size_t i = 0; i < report.collections.size(); ++i) {
    const auto sufficient = app::SufficientBatch(report.tuning.workloads, i, app::kSufficientShare);
    if (!sufficient || (advice && sufficient->sufficient.batch <= advice->sufficient.batch))
      continue;
    advice = BatchAdvice{*sufficient, report.collections[i].name};
  }
  return advice;
}

std::string MillisecondsText(double seconds) { return fmt::format("{:.2f} ms", seconds * 1e3); }

std::string BatchText(const TuneReport& report, std::uint32_t batch_queries_max) {
  const auto advice = AdviceOf(report);
  if (!advice) return "";
  const BatchRate& sufficient = advice->sufficient;
  if (sufficient.batch >= advice->largest.batch) {
    return fmt::format(
        "limits.batch_queries_max is {}: smaller batches than {} answer fewer queries\n"
        "  a second\n",
        base::Grouped(batch_queries_max), base::Grouped(advice->largest.batch));
  }
  return fmt::format(
      "limits.batch_queries_max is {}: batches of {} reach {:.0f} % of the rate\n"
      "  of {}, and take {} instead of {} ({});\n  lower it where latency counts more\n",
      base::Grouped(batch_queries_max), base::Grouped(sufficient.batch),
      100 * sufficient.queries_per_second / advice->largest.queries_per_second,
      base::Grouped(advice->largest.batch), MillisecondsText(sufficient.seconds),
      MillisecondsText(advice->largest.seconds), advice->collection);
}

// Whether something was changed, and why not.
std::string ChangeText(const TuneReport& report) {
  const BetterTuning& tuning = report.tuning;
  if (tuning.is_busy()) {
    return fmt::format(
        "nothing is changed: other programs took {:.0f} % of the processors meanwhile;\n"
        "  measure again when they rest\n",
        100 * tuning.other_load);
  }
  const auto unmeasured =
      std::ranges::count(tuning.parameters, TuneConclusion::kNoTime, &TunedParameter::conclusion);
  const std::string no_time =
      unmeasured > 0 ? fmt::format("{} of {} parameters had no time; give a longer --duration\n",
                                   unmeasured, tuning.parameters.size())
                     : "";
  if (tuning.is_changed()) {
    return fmt::format("{} answers compared before and after: the same bits\n{}",
                       base::Grouped(report.answers_compared), no_time);
  }
  if (unmeasured > 0) return fmt::format("nothing is changed: {}", no_time);
  return "nothing is changed: what was in force is the best that was found\n";
}

// The command line whose settings make serve start with what was written.
std::string ServeText(const TuneSetting& setting) {
  const std::string threads =
      setting.threads > 0 ? fmt::format(" --threads {}", setting.threads) : "";
  return fmt::format("simile serve{}", threads);
}

std::string WrittenText(const TuneReport& report, const TuneSetting& setting) {
  if (setting.output.empty()) return "nothing was written (--dry-run)\n";
  const std::string file = setting.output.string();
  if (!report.written) return fmt::format("{} holds all of it already\n", Printable(file));
  const std::string wrote = fmt::format("wrote {}\n", Printable(file));
  if (setting.cache_origin.empty()) {
    return fmt::format(
        "{}  serve starts with it where backend.tuning_cache names it:\n"
        "  SIMILE_BACKEND_TUNING_CACHE={} {} ...\n",
        wrote, ShellWord(file), ServeText(setting));
  }
  const std::string whose =
      setting.cache_origin.starts_with("default")
          ? "of this user here"
          : fmt::format("with this backend.tuning_cache ({})", Printable(setting.cache_origin));
  return fmt::format("{}  each `{}` {}\n  starts with it{}\n", wrote, ServeText(setting), whose,
                     report.tuning.is_changed() ? "; restart those that run" : "");
}

Json GainJson(const std::optional<RatioRange>& ratio) {
  if (!ratio) return nullptr;
  return {{"median", GainOf(ratio->median)},
          {"low", GainOf(ratio->high)},
          {"high", GainOf(ratio->low)}};
}

Json SecondsJson(double seconds) { return seconds > 0 ? Json(seconds) : Json(nullptr); }

Json GpuJson(const app::GpuRates& gpu) {
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

// What the flags and the configuration mean together.
absl::StatusOr<app::TuneOptions> OptionsOf(const TuneFlags& flags, const app::Config& config) {
  app::TuneOptions options;
  if (config.collections.empty()) {
    return absl::InvalidArgumentError(
        "nothing to measure: name a collection's folder, as in simile tune "
        "films=examples/films");
  }
  if (flags.duration) {
    const auto duration = ParseDuration(*flags.duration);
    if (!duration.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--duration: ", duration.status().message()));
    }
    if (*duration < kShortestTune || *duration > kLongestTune) {
      return absl::InvalidArgumentError("--duration: from 1s to 5m");
    }
    options.duration = *duration;
  }
  options.k = flags.k.value_or(options.k);
  if (options.k > config.limits.k_max) {
    return absl::InvalidArgumentError(
        fmt::format("-k: at most {} (limits.k_max)", config.limits.k_max));
  }
  const std::uint32_t batch_max = std::min(options.batch_max, config.limits.batch_queries_max);
  options.batch_max = flags.batch.value_or(batch_max);
  if (options.batch_max > batch_max) {
    return absl::InvalidArgumentError(
        fmt::format("--batch: at most {} (limits.batch_queries_max)", batch_max));
  }
  if (flags.dry_run) return options;
  options.output = flags.output ? std::filesystem::path(*flags.output) : config.tuning_cache;
  if (options.output.empty()) {
    return absl::InvalidArgumentError(
        "no file to write to, because neither HOME nor backend.tuning_cache names one; give "
        "--output FILE or --dry-run");
  }
  return options;
}

TuneSetting SettingOf(const app::ConfigReading& reading, const app::TuneOptions& options) {
  const app::Config& config = reading.config;
  TuneSetting setting{config.limits.batch_queries_max, config.backend.threads, options.output, ""};
  std::error_code error;
  if (options.output == config.tuning_cache ||
      std::filesystem::equivalent(options.output, config.tuning_cache, error)) {
    setting.cache_origin = reading.origins[app::SettingIndex("backend.tuning_cache")];
  }
  return setting;
}

int RunTune(const TuneFlags& flags) {
  const absl::StatusOr<app::ConfigReading> reading =
      ReadConfigFor(flags.config, flags.collections, flags.threads);
  if (!reading.ok()) {
    Fail(reading.status(), flags.json);
    return kWrongUsage;
  }
  const absl::StatusOr<app::TuneOptions> options = OptionsOf(flags, reading->config);
  if (!options.ok()) {
    Fail(options.status(), flags.json);
    return kWrongUsage;
  }
  InterruptMessage interrupt;
  interrupt.Set(options->output.empty()
                    ? "stopped; nothing was written"
                    : fmt::format("stopped; {} is as it was", options->output.string()));
  absl::StatusOr<TuneReport> report = [&] {
    if (flags.json) return app::TuneCollections(reading->config, *options, RealClock(), {});
    TuneProgressBar bar;
    return app::TuneCollections(
        reading->config, *options, RealClock(),
        [&bar](double share, const std::string& what) { bar.Set(share, what); });
  }();
  if (!report.ok()) return Fail(report.status(), flags.json);
  const TuneSetting setting = SettingOf(*reading, *options);
  fmt::print(
      "{}", flags.json ? TuneJson(*report, setting) : TuneText(*report, setting, StandardOutput()));
  std::fflush(stdout);  // so that the suggestion follows it
  if (!flags.json && report->written && setting.cache_origin.starts_with("default")) {
    SuggestNext("simile config --print");
  }
  return kSucceeded;
}

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
  const bool changed = report.tuning.is_changed();
  text += '\n' + GpuText(report.gpu, terminal);
  fmt::format_to(std::back_inserter(text), "{}\n{}\n", ParametersTable(report, terminal),
                 SearchesTable(report, changed, terminal));
  text += ChangeText(report);
  if (report.index_bytes_before != report.index_bytes_after) {
    fmt::format_to(std::back_inserter(text), "the indexes take {} instead of {}\n",
                   base::BytesText(report.index_bytes_after),
                   base::BytesText(report.index_bytes_before));
  }
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
  for (const TunedParameter& parameter : report.tuning.parameters) {
    parameters.push_back({{"name", parameter.name()},
                          {"unit", parameter.unit()},
                          {"before", parameter.before},
                          {"after", parameter.after},
                          {"conclusion", NameOf(parameter.conclusion)},
                          {"gain", GainJson(parameter.ratio)},
                          {"measured_on", nullptr}});
    if (parameter.ratio) {
      parameters.back()["measured_on"] = app::WorkloadText(parameter.workload, report.collections);
    }
  }
  Json searches = Json::array();
  for (const TunedWorkload& each : report.tuning.workloads) {
    searches.push_back({{"collection", report.collections[each.workload.collection].name},
                        {"batch", each.workload.batch},
                        {"rows_for_one", each.workload.rows_for_one},
                        {"before_s", SecondsJson(each.before_s)},
                        {"after_s", SecondsJson(each.after_s)},
                        {"gain", GainJson(each.ratio)}});
  }
  const auto advice = AdviceOf(report);
  Json json = {
      {"machine",
       {{"cpu", report.key.cpu}, {"threads", report.key.threads}, {"kernels", report.key.kernels}}},
      {"collections", std::move(collections)},
      {"parameters", std::move(parameters)},
      {"searches", std::move(searches)},
      {"gpu", GpuJson(report.gpu)},
      {"answers_compared", report.answers_compared},
      {"index_bytes", {{"before", report.index_bytes_before}, {"after", report.index_bytes_after}}},
      {"other_load", report.tuning.other_load},
      {"batch_queries_max", {{"now", setting.batch_queries_max}, {"sufficient", nullptr}}},
      {"file", nullptr}};
  if (advice) json["batch_queries_max"]["sufficient"] = advice->sufficient.batch;
  if (report.written) json["file"] = setting.output.string();
  return JsonLine(json);
}

void AddTuneCommand(CommandLine& line) {
  auto flags = std::make_shared<TuneFlags>();
  const app::TuneOptions defaults;
  Command command =
      line.Add("tune", "Measure this machine and your collections, for serve to be faster");
  command
      .Texts("NAME=FOLDER", flags->collections, "",
             "A collection to measure, or its FOLDER alone (default: those of the configuration)")
      .Paths(PathKind::kNamedFolder)
      .Text("--duration", flags->duration, "TIME",
            "How long to measure once the files are read, 1s to 5m (default 60s)")
      .Number("-k", flags->k, "N", fmt::format("Hits of a query (default {})", defaults.k), 1)
      .Number("--batch", flags->batch, "N",
              fmt::format("Queries at once, at most (default {}, or limits.batch_queries_max where "
                          "that is less)",
                          base::Grouped(defaults.batch_max)),
              1)
      .Text("--threads", flags->threads, "NUMBER",
            "Measure for `serve` with the same --threads; without it the number of threads is "
            "tuned, too")
      .File("--output", flags->output, "FILE",
            "Where to write (default: backend.tuning_cache, which serve reads)")
      .Switch("--dry-run", flags->dry_run, "Measure and report, but write nothing")
      .File("--config", flags->config, "FILE", "A JSON file of settings (or SIMILE_CONFIG)")
      .Switch("--json", flags->json, "Print JSON for programs");
  command
      .Footer(
          "simile tune films=examples/films --duration 30s\n"
          "Measures a GPU that serve would use: the passes that are fastest for each collection, "
          "and "
          "the rate of 1 to --batch queries. Runs the CPU engine with other parameters than those "
          "in force (`simile config --print`) "
          "and keeps what is faster beyond doubt for some kind of search and slower for none. "
          "Answers are the same bits with any of them; 1,000 of each collection are compared "
          "before the file is written. Needs no server, and a quiet machine.\n"
          "Exit codes: 0 measured, whether something changed or not, 1 it could not, 64 a wrong "
          "flag or setting, 130 stopped by Ctrl-C with nothing written.")
      .Run([flags] { return RunTune(*flags); });
}

}  // namespace simile::cli
