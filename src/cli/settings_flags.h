#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "app/config/config_read.h"
#include "cli/command_line.h"

namespace simile::cli {

// Turns FOLDER into NAME=FOLDER, with the folder's own name; returns NAME=FOLDER unchanged.
std::string NamedFolder(const std::string& collection);

// Reads the configuration of a command whose FOLDER arguments replace the configured collections.
//   file         the file of --config
//   collections  each FOLDER or NAME=FOLDER; empty: the configured collections
//   threads      of --threads
// Errors: those of app::ReadConfig.
absl::StatusOr<app::ConfigReading> ReadConfigFor(const std::optional<std::string>& file,
                                                 const std::vector<std::string>& collections,
                                                 const std::optional<std::string>& threads);

// The flags of `serve`, `config` and others: --config, and the flag of each setting of
// app/config/settings.cpp that has one.
class SettingsFlags {
 public:
  //   keys  the settings whose flags are added; empty: all settings
  void AddTo(Command& command, std::span<const std::string_view> keys = {});

  // Whether any of these flags is given, --config included.
  bool any_given() const { return file_ || !Sources().flags.empty(); }

  // Reads the file, the environment and the given flags. Errors: app::ReadConfig's.
  absl::StatusOr<app::ConfigReading> Read() const;

  // The log format, as far as it can be read. For the error of a Read that failed, which a JSON log
  // must contain too.
  app::LogFormat ReadLogFormat() const;

 private:
  app::ConfigSources Sources() const;

  std::optional<std::string> file_;
  // By key of the setting. Maps, because the parser keeps references to the elements.
  std::map<std::string, bool> switches_;
  std::map<std::string, std::optional<std::string>> values_;
  std::map<std::string, std::vector<std::string>> lists_;
};

}  // namespace simile::cli
