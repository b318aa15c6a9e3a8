#include <memory>

#include "app/serve.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/settings_flags.h"

namespace simile::cli {
namespace {

int RunServe(const SettingsFlags& flags) {
  const absl::StatusOr<app::ConfigReading> reading = flags.Read();
  if (!reading.ok()) return Fail(reading.status());
  return app::RunServe(reading->config);
}

}  // namespace

void AddServeCommand(CommandLine& line) {
  auto flags = std::make_shared<SettingsFlags>();
  Command command = line.Add("serve", "Serve collections until SIGTERM or Ctrl-C");
  flags->AddTo(command);
  command
      .Footer(
          "simile serve --collection films=examples/films\n"
          "`simile config --print` shows every setting, including those without a flag.")
      .Run([flags] { return RunServe(*flags); });
}

}  // namespace simile::cli
