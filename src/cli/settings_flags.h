#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/config_read.h"
#include "cli/command_line.h"

namespace simile::cli {

// The flags of `serve` and `config`: --config, and one for each setting of app/settings.cpp that
// has a flag.
class SettingsFlags {
 public:
  void AddTo(Command& command);

  // Reads file, environment and the flags given. Errors: those of app::ReadConfig.
  absl::StatusOr<app::ConfigReading> Read() const;

  // How the log is to be written, as far as it can be told when Read fails, whose error belongs
  // into a log of JSON too.
  app::LogFormat ReadLogFormat() const;

 private:
  app::ConfigSources Sources() const;

  std::optional<std::string> file_;
  // By key of the setting. Maps, because the parser keeps references to their elements.
  std::map<std::string, bool> switches_;
  std::map<std::string, std::optional<std::string>> values_;
  std::map<std::string, std::vector<std::string>> lists_;
};

}  // namespace simile::cli
