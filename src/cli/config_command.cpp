#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "app/tuning.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/settings_flags.h"
#include "cli/settings_text.h"
#include "data/wording.h"

namespace simile::cli {
namespace {

struct ConfigFlags {
  SettingsFlags settings;
  bool print = false;
  bool json = false;
};

int RunConfig(const ConfigFlags& flags) {
  const absl::StatusOr<app::ConfigReading> reading = flags.settings.Read();
  if (!reading.ok()) return Fail(reading.status());
  if (flags.json) {
    fmt::print("{}", SettingsJson(*reading, app::KnownTuning(reading->config)));
    return kSucceeded;
  }
  if (flags.print) {
    fmt::print("{}\n{}", SettingsTable(*reading, StandardOutput()),
               TuningTable(app::KnownTuning(reading->config), StandardOutput()));
    return kSucceeded;
  }
  const auto changed = std::ranges::count_if(
      reading->origins, [](const std::string& origin) { return !origin.starts_with("default"); });
  fmt::print("the configuration is sound; {} of {} differ from their defaults\n", changed,
             data::Counted(reading->origins.size(), "setting"));
  SuggestNext("simile config --print");
  return kSucceeded;
}

}  // namespace

void AddConfigCommand(CommandLine& line) {
  auto flags = std::make_shared<ConfigFlags>();
  Command command =
      line.Add("config", "Check what file, environment and flags amount to for `serve`");
  command
      .Switch("--print", flags->print,
              "Print every setting: value, unit, range, default, origin; and the CPU's tuning")
      .Switch("--json", flags->json, "Print every setting as JSON for programs");
  flags->settings.AddTo(command);
  command
      .Footer(
          "A JSON file, then SIMILE_* variables, then flags; the last one wins. server.port is\n"
          "SIMILE_SERVER_PORT, and {\"server\": {\"port\": 50051}} in a file. From other servers,\n"
          "USE_GPU (true: auto, false: cpu) and INFERENCE_BATCH_SIZE are understood, too.")
      .Run([flags] { return RunConfig(*flags); });
}

}  // namespace simile::cli
