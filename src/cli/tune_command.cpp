#include "cli/tune_command.h"

#include <algorithm>
#include <chrono>
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
#include "cli/config_command.h"
#include "cli/errors.h"
#include "cli/gpu_rates_text.h"
#include "cli/interrupt_message.h"
#include "cli/output_text.h"
#include "cli/progress.h"
#include "cli/quantity_text.h"
#include "cli/settings_flags.h"
#include "cli/table.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;
using app::ThreadsConclusion;
using app::TimedWorkload;
using app::TuneReport;
using backend::cpu::TuningValue;
using backend::cpu::TuningValues;

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

// A conclusion: its name in JSON, and why the number of threads stays.
struct ConclusionWords {
  const char* name;
  const char* reason;
};
ConclusionWords WordsOf(ThreadsConclusion conclusion) {
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

// How many threads search, and why.
std::string ThreadsText(const TuneReport& report) {
  const app::BetterTuning& tuning = report.tuning;
  if (tuning.is_changed()) {
    return fmt::format(
        "{} search instead of {}\n{} answers compared before and after: the same bits\n",
        base::Counted(tuning.threads_after, "thread"), base::Grouped(tuning.threads_before),
        base::Grouped(report.answers_compared));
  }
  std::string text =
      fmt::format("the number of threads stays: {}\n", WordsOf(tuning.conclusion).reason);
  if (tuning.is_busy()) {
    fmt::format_to(
        std::back_inserter(text),
        "  other programs took {:.0f} % of the processors; measure again when they rest\n",
        100 * tuning.other_load);
  }
  return text;
}

// The share by which the rate of queries rises.
double GainOf(const TimedWorkload& each) { return each.before_s / each.after_s - 1; }

std::string RateText(const TimedWorkload& each, double seconds) {
  if (seconds <= 0) return "-";
  const double rate = static_cast<double>(each.workload.batch) / seconds;
  return base::Grouped(static_cast<std::uint64_t>(rate));
}

std::string MillisecondsText(double seconds) {
  return seconds > 0 ? fmt::format("{:.3f}", seconds * 1e3) : "-";
}

// Every kind of search, and what it gains where the number of threads changes.
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
                  changed ? fmt::format("{:+.1f} %", 100 * GainOf(each)) : ""});
  }
  return table.Render(terminal, 0);
}

// The batch that suffices for every collection. 0 on a busy machine: rates of different batches
// cannot be compared there.
std::size_t SufficientBatchOf(const TuneReport& report) {
  std::size_t sufficient = 0;
  if (report.tuning.is_busy()) return sufficient;
  for (std::size_t i = 0; i < report.collections.size(); ++i) {
    sufficient = std::max(sufficient, app::SufficientBatch(report.tuning.workloads, i));
  }
  return sufficient;
}

std::string BatchText(const TuneReport& report, std::uint32_t batch_queries_max) {
  const std::size_t sufficient = SufficientBatchOf(report);
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

// Measures while a bar shows the progress on a terminal.
absl::StatusOr<TuneReport> TuneWithBar(const app::Config& config, const app::TuneOptions& options) {
  std::mutex mutex;  // guards `line`, which the bar's thread reads
  std::string line = "measuring";
  const ProgressBar bar([&] {
    const std::lock_guard lock(mutex);
    return line;
  });
  const auto progress = [&](double share, const std::string& what) {
    constexpr std::size_t kWidth = 20;
    const std::lock_guard lock(mutex);
    line = fmt::format("measuring {}  {}", BarText(share, kWidth), what);
  };
  return app::TuneCollections(config, options, RealClock(), progress);
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
  const absl::StatusOr<TuneReport> report =
      flags.json ? app::TuneCollections(reading->config, *options, RealClock(), {})
                 : TuneWithBar(reading->config, *options);
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
    if (report.tuning.is_changed()) searches.back()["gain"] = GainOf(each);
  }
  const std::size_t sufficient = SufficientBatchOf(report);
  Json json = {
      {"machine",
       {{"cpu", report.key.cpu}, {"threads", report.key.threads}, {"kernels", report.key.kernels}}},
      {"collections", std::move(collections)},
      {"threads",
       {{"before", report.tuning.threads_before},
        {"after", report.tuning.threads_after},
        {"conclusion", WordsOf(report.tuning.conclusion).name}}},
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
            "Measure for `serve` with the same --threads; without it their number is chosen, too")
      .File("--output", flags->output, "FILE",
            "Where to write (default: backend.tuning_cache, which serve reads)")
      .Switch("--dry-run", flags->dry_run, "Measure and report, but write nothing")
      .File("--config", flags->config, "FILE", "A JSON file of settings (or SIMILE_CONFIG)")
      .Switch("--json", flags->json, "Print JSON for programs");
  command
      .Footer(
          "simile tune films=examples/films --duration 30s\n"
          "Measures a GPU that serve would use: the passes that are fastest for each collection, "
          "and the rate of 1 to --batch queries. Measures where the CPU engine's strategies cross, "
          "unless the file holds it. Measures every kind of search with each quarter of the usable "
          "threads, and keeps a number of threads that is clearly faster, and slower for no kind "
          "of search. Answers are the same bits with any number; 1,000 of each collection are "
          "compared before the file is written. Needs no server, and a quiet machine.\n"
          "Exit codes: 0 measured, whether something changed or not, 1 it could not, 64 a wrong "
          "flag or setting, 130 stopped by Ctrl-C with nothing written.")
      .Run([flags] { return RunTune(*flags); });
}

}  // namespace simile::cli
