#pragma once

#include <string>
#include <vector>

#include "app/config/config_check.h"
#include "app/config/config_read.h"
#include "app/tuning/tuning.h"
#include "cli/terminal.h"

namespace simile::cli {

// Every setting in a table: key, value with unit, the default if it differs, and origin.
std::string SettingsTable(const app::ConfigReading& reading, const Terminal& terminal);

// The CPU engine's threads and tuning in a table: name, value with unit, and origin. If the tuning
// cache file could not be read, its error follows.
std::string TuningTable(const app::TuningInForce& tuning, const Terminal& terminal);

// The variables of other programs that are set, in a table: name, value, who reads the variable,
// and its effect or what to set instead. The value is `(set)` if only the variable's family is
// known, because it may be a secret. Begins with an empty line. Empty if no such variable is set.
std::string VariableTable(const app::ConfigReading& reading, const Terminal& terminal);

// All as {"settings": [{"key", "value", "unit", "range", "default", "origin", "environment",
// "flag", "help"}], "familiar_names": [{"name", "key", "help"}], "foreign_variables": [{"name",
// "value" or null, "reader", "help"}], "tuning": [{"name", "value", "unit", "default", "origin",
// "help"}], "problems": [{"key", "origin", "message"}]} on one line, ended by '\n'. Numbers and
// switches keep their types. The reader of a variable without effect is "". A family, such as
// "WORKER_*", is one entry, and each of its variables that is set is another.
std::string SettingsJson(const app::ConfigReading& reading, const app::TuningInForce& tuning,
                         const std::vector<app::ConfigProblem>& problems);

}  // namespace simile::cli
