#include <cstdio>
#include <exception>

#include <absl/status/status.h>
#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "observe/build_info.h"

namespace simile::cli {
namespace {

int Main(int argument_count, char** arguments) {
  const observe::BuildInfo build = observe::GetBuildInfo();
  CommandLine line("Simile: exact top-k similarity and recommendation over embedding matrices",
                   fmt::format("simile {} ({})", build.version, build.build));
  AddServeCommand(line);
  AddHealthCommand(line);
  AddSearchCommand(line);
  AddSimilarCommand(line);
  AddRecommendCommand(line);
  AddFieldsCommand(line);
  AddListCommand(line);
  AddLoadCommand(line);
  AddReloadCommand(line);
  AddUnloadCommand(line);
  AddInspectCommand(line);
  AddConfigCommand(line);
  const int exit_code = line.Run(argument_count, arguments);
  // An answer that did not reach a full disk is no answer.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return Fail(absl::DataLossError("standard output cannot be written to"));
  }
  return exit_code;
}

}  // namespace
}  // namespace simile::cli

// Libraries throw where nothing else is left: no memory, a full disk behind standard output.
int main(int argument_count, char** arguments) {
  try {
    return simile::cli::Main(argument_count, arguments);
  } catch (const std::exception& error) {
    return simile::cli::Fail(absl::InternalError(error.what()));
  }
}
