#pragma once

#include <string>
#include <vector>

namespace simile::cli {

// What one run of build/bin/simile printed and how it ended.
struct ProgramRun {
  int exit_code = -1;  // 128 + the signal when one ended it
  std::string printed;
  std::string errors;
};

// Runs the program with these arguments and only these NAME=VALUE in its environment. Its standard
// streams are files, never a terminal.
ProgramRun RunProgram(const std::vector<std::string>& arguments, const std::string& input = "",
                      const std::vector<std::string>& environment = {},
                      const std::string& program = SIMILE_PROGRAM);

}  // namespace simile::cli
