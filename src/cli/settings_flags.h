#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/config_read.h"
#include "cli/command_line.h"

namespace simile::cli {

// The flags of the server's settings, made from the table in app/settings.cpp, and --config.
// `serve` obeys them and `config` shows what they amount to.
class SettingsFlags {
 public:
  void AddTo(Command& command);

  // Reads file, environment and the flags that were given. Errors: those of app::ReadConfig.
  absl::StatusOr<app::ConfigReading> Read() const;

 private:
  std::optional<std::string> file_;
  // By key of the setting. Maps, because the parser keeps references to what they hold.
  std::map<std::string, bool> switches_;
  std::map<std::string, std::optional<std::string>> values_;
  std::map<std::string, std::vector<std::string>> lists_;
};

}  // namespace simile::cli
