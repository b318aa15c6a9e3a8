#include <memory>
#include <string>

#include "app/config/config_check.h"
#include "app/serve.h"
#include "base/memory_pages.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/settings_flags.h"
#include "observe/log.h"

namespace simile::cli {
namespace {

// Reports a mistake in the settings, as a log line if the log is JSON. Returns kWrongUsage.
int RefuseSettings(const SettingsFlags& flags, const absl::Status& status) {
  if (flags.ReadLogFormat() == app::LogFormat::kJson) {
    const observe::Logger log({app::LogFormat::kJson, app::LogLevel::kError, nullptr});
    log.Error(std::string(status.message()));
  } else {
    Fail(status);
  }
  return kWrongUsage;
}

int RunServe(const SettingsFlags& flags) {
  const absl::StatusOr<app::ConfigReading> reading = flags.Read();
  if (!reading.ok()) return RefuseSettings(flags, reading.status());
  const absl::Status served = app::CheckSomethingToServe(reading->config);
  if (!served.ok()) return RefuseSettings(flags, served);
  base::MapLargeBlocks();
  app::RunServe(*reading);
}

}  // namespace

void AddServeCommand(CommandLine& line) {
  auto flags = std::make_shared<SettingsFlags>();
  Command command = line.Add("serve", "Serve collections until SIGTERM or Ctrl-C");
  flags->AddTo(command);
  command
      .Footer(
          "simile serve --collection films=examples/films\n"
          "`simile config --print` shows every setting, including those without a flag.\n"
          "Exit codes: 0 stopped, 1 it could not start, 64 a mistake in a flag, variable or "
          "configuration file, 75 the GPU was lost and a restart may bring it back.")
      .Run([flags] { return RunServe(*flags); });
}

}  // namespace simile::cli
