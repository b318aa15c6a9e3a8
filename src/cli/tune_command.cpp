#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <absl/strings/str_cat.h>
#include <fmt/format.h>

#include "app/config/config_read.h"
#include "app/config/settings.h"
#include "base/message_text.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/interrupt_message.h"
#include "cli/output_text.h"
#include "cli/progress.h"
#include "cli/quantity_text.h"
#include "cli/settings_flags.h"
#include "cli/tune_text.h"

namespace simile::cli {
namespace {

using app::TuneReport;

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

// Makes the options from the flags and the configuration. Errors: kInvalidArgument naming the flag.
absl::StatusOr<app::TuneOptions> MakeTuneOptions(const TuneFlags& flags,
                                                 const app::Config& config) {
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

TuneSetting MakeTuneSetting(const app::ConfigReading& reading, const app::TuneOptions& options) {
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
  const absl::StatusOr<app::TuneOptions> options = MakeTuneOptions(flags, reading->config);
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
  const TuneSetting setting = MakeTuneSetting(*reading, *options);
  fmt::print(
      "{}", flags.json ? TuneJson(*report, setting) : TuneText(*report, setting, StandardOutput()));
  std::fflush(stdout);  // so that the suggestion follows it
  if (!flags.json && report->written && setting.cache_origin.starts_with("default")) {
    SuggestNext("simile config --print");
  }
  return kSucceeded;
}

}  // namespace

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
