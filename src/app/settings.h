#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <absl/status/status.h>

#include "app/config.h"

namespace simile::app {

// The type of a setting as a JSON file must write it.
enum class SettingKind : std::uint8_t {
  kText,         // a string
  kPath,         // a string; relative ones count from the file that says so
  kChoice,       // a string out of a few
  kWholeNumber,  // a number
  kNumber,       // a number, with a fraction or without
  kSwitch,       // true or false
  kCollections,  // an object from name to folder
};

// One thing an operator may set: how every source names it, what it may be, and where it goes.
struct Setting {
  std::string key;         // "server.port"
  std::string flag;        // "--port"; empty: only the file and the environment set it
  std::string flag_value;  // what the bare flag means; empty: the flag takes a value
  std::string unit;        // "ms", "MiB", "queries"; empty for names and switches
  std::string range;       // "0 to 65535", "auto, cpu or gpu"
  std::string help;        // one sentence
  SettingKind kind = SettingKind::kText;

  // Puts a value into the config. Only kCollections takes more than one text (`NAME=FOLDER` each).
  // Errors: kInvalidArgument, `"http" is not a whole number from 0 to 65535`; the caller knows the
  // key and where the value came from, and says so.
  std::function<absl::Status(const std::vector<std::string>& values, Config& config)> set;
  // The value as set() would take it; one text a collection.
  std::function<std::vector<std::string>(const Config& config)> get;

  // SIMILE_ and the key in capitals: "SIMILE_SERVER_PORT".
  std::string Environment() const;
};

// All settings, grouped by the first part of their keys. The one place where each is described.
const std::vector<Setting>& Settings();

// A name from other servers of this kind that means one of ours, in the file or the environment.
struct FamiliarName {
  std::string name;  // "USE_GPU"
  std::string key;   // "backend.preference"
  std::string help;  // how its values map
  // The value in our terms. Errors: kInvalidArgument as for Setting::set.
  std::function<absl::Status(const std::string& value, Config& config)> set;
};

// All of them. Those of the GPU are understood on machines without one, too.
const std::vector<FamiliarName>& FamiliarNames();

}  // namespace simile::app
