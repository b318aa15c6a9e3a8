#pragma once

#include <string>

#include "app/config_read.h"
#include "cli/terminal.h"

namespace simile::cli {

// Every setting in a table: key, value, unit, range, default and origin.
std::string SettingsTable(const app::ConfigReading& reading, const Terminal& terminal);

// The same as {"settings": [{"key", "value", "unit", "range", "default", "origin", "environment",
// "flag", "help"}]} on one line, ended by '\n'. Numbers and switches keep their types.
std::string SettingsJson(const app::ConfigReading& reading);

}  // namespace simile::cli
