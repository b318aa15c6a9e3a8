#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "app/config/config.h"

namespace simile::app {

// The type of a setting as a JSON file must write it.
enum class SettingKind : std::uint8_t {
  kText,         // a string
  kPath,         // a string; relative paths start at the folder of the file
  kChoice,       // a string out of a few
  kWholeNumber,  // a number
  kNumber,       // a number, with a fraction or without
  kSwitch,       // true or false
  kCollections,  // an object from name to folder
};

// The environment variable of a key: "SIMILE_SERVER_PORT" for "server.port".
std::string ToVariableName(std::string_view key);

// One setting: its name in every source, its range, and how to store it in the config.
struct Setting {
  std::string key;         // "server.port"
  std::string flag;        // "--port"; empty: it has no flag, only a file key and a variable
  std::string flag_value;  // the value of the bare flag; empty: the flag takes a value
  std::string unit;        // "ms", "MiB", "queries"; empty for names and switches
  std::string range;       // "0 to 65535", "auto, cpu or gpu"
  std::string help;        // one sentence
  SettingKind kind = SettingKind::kText;

  // Puts a value into the config. Only kCollections takes more than one text (`NAME=FOLDER` each).
  // Errors: kInvalidArgument, `"http" is not a whole number from 0 to 65535`; the caller adds the
  // key and the origin of the value.
  std::function<absl::Status(const std::vector<std::string>& values, Config& config)> set;
  // The value as set() would take it; one text a collection.
  std::function<std::vector<std::string>(const Config& config)> get;

  std::string Environment() const { return ToVariableName(key); }
};

// All settings, grouped by the first part of their keys. This table is their only description.
const std::vector<Setting>& Settings();
// The number of this key's setting in the table; the table's size for an unknown key.
std::size_t SettingIndex(std::string_view key);

// A setting whose earlier name is refused with its new one.
struct RenamedSetting {
  std::string_view old_key;
  std::string_view key;
  std::string_view since;  // "0.1"
};
std::span<const RenamedSetting> RenamedSettings();

// A former setting, which is refused with a hint at its replacement.
struct EndedSetting {
  std::string_view key;
  std::string_view instead;  // a sentence's end: "connections are always guarded"
};
std::span<const EndedSetting> EndedSettings();

// A name that other servers of this kind use for one of our settings, in the file or environment.
struct FamiliarName {
  std::string name;  // "USE_GPU"
  std::string key;   // "backend.preference"
  std::string help;  // how its values map
  // Converts and stores the value. False where the setting is left as it was.
  // Errors: kInvalidArgument as for Setting::set.
  std::function<absl::StatusOr<bool>(const std::string& value, Config& config)> set;
};

// All of them. Those of the GPU are read on machines without one too.
const std::vector<FamiliarName>& FamiliarNames();

}  // namespace simile::app
