#include <cstdio>
#include <exception>

#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <fmt/format.h>
#include <grpc/support/log.h>

#include "base/file_descriptor.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "observe/build_info.h"

namespace simile::cli {
namespace {

int Main(int argument_count, char** arguments) {
  const observe::BuildInfo build = observe::GetBuildInfo();
  CommandLine line("exact top-k similarity and recommendation over embedding matrices",
                   fmt::format("simile {} ({})", build.version, build.build));
  AddServeCommand(line);
  AddHealthCommand(line);
  AddSearchCommand(line);
  AddSimilarCommand(line);
  AddRecommendCommand(line);
  AddExplainCommand(line);
  AddLookupCommand(line);
  AddFetchCommand(line);
  AddFieldsCommand(line);
  AddInfoCommand(line);
  AddListCommand(line);
  AddLoadCommand(line);
  AddReloadCommand(line);
  AddRollbackCommand(line);
  AddUnloadCommand(line);
  AddInspectCommand(line);
  AddPlanCommand(line);
  AddVerifyCommand(line);
  AddBenchCommand(line);
  AddTopCommand(line);
  AddTuneCommand(line);
  AddTokenCommand(line);
  AddConfigCommand(line);
  AddDoctorCommand(line);
  AddVersionCommand(line);
  AddProgramCommands(line);
  const int exit_code = line.Run(argument_count, arguments);
  // Lost output is a failure, for example on a full disk.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return Fail(absl::DataLossError("standard output cannot be written to"));
  }
  return exit_code;
}

}  // namespace
}  // namespace simile::cli

// Libraries throw if memory runs out or standard output cannot be written.
int main(int argument_count, char** arguments) {
  simile::base::OpenClosedStandardStreams();
  // Debian's abseil checks for a deadlock at each lock of a mutex, and gRPC takes dozens of locks
  // per call.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // Silences gRPC's log: commands print why a connection failed, and `serve` has its own log.
  gpr_set_log_function([](gpr_log_func_args* /*line*/) {});
  try {
    return simile::cli::Main(argument_count, arguments);
  } catch (const std::exception& error) {
    return simile::cli::Fail(absl::InternalError(error.what()));
  }
}
