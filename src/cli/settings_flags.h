#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "app/config_read.h"
#include "cli/command_line.h"

namespace simile::cli {

// FOLDER as NAME=FOLDER, named as the folder is; NAME=FOLDER as it is.
std::string NamedFolder(const std::string& collection);

// The configuration of a command that takes FOLDERs in place of the configured collections.
//   file         of --config
//   collections  each FOLDER or NAME=FOLDER; empty: the configured ones
//   threads      of --threads
// Errors: those of app::ReadConfig.
absl::StatusOr<app::ConfigReading> ReadConfigFor(const std::optional<std::string>& file,
                                                 const std::vector<std::string>& collections,
                                                 const std::optional<std::string>& threads);

// The flags of `serve`, `config` and others: --config, and one for each setting of app/settings.cpp
// that has a flag.
class SettingsFlags {
 public:
  //   keys  of the settings to add; empty: all
  void AddTo(Command& command, std::span<const std::string_view> keys = {});

  // Whether any of them is on the command line, --config among them.
  bool any_given() const { return file_ || !Sources().flags.empty(); }

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
