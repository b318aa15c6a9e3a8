#pragma once

#include <string>
#include <vector>

#include "app/config_check.h"
#include "app/config_read.h"
#include "app/tuning.h"
#include "cli/terminal.h"

namespace simile::cli {

// Every setting in a table: key, value with unit and another default, and origin.
std::string SettingsTable(const app::ConfigReading& reading, const Terminal& terminal);

// The CPU engine's threads and tuning in a table: name, value with unit, and origin. Below it the
// error of the tuning cache file, if any.
std::string TuningTable(const app::TuningInForce& tuning, const Terminal& terminal);

// The variables of other programs that are set, in a table: name, value, who reads it, and what it
// did, does or what to set instead. The value is `(set)` where only the family is known.
// Begins with an empty line; empty when none is set.
std::string VariableTable(const app::ConfigReading& reading, const Terminal& terminal);

// All as {"settings": [{"key", "value", "unit", "range", "default", "origin", "environment",
// "flag", "help"}], "familiar_names": [{"name", "key", "help"}], "foreign_variables": [{"name",
// "value" or null, "reader", "help"}], "tuning": [{"name", "value", "unit", "default", "origin",
// "help"}], "problems": [{"key", "origin", "message"}]} on one line, ended by '\n'. Numbers and
// switches keep their types; the reader of a variable without effect is "". Beside a family, such
// as "WORKER_*", its variables that are set are entries of their own.
std::string SettingsJson(const app::ConfigReading& reading, const app::TuningInForce& tuning,
                         const std::vector<app::ConfigProblem>& problems);

}  // namespace simile::cli
