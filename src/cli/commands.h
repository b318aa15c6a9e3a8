#pragma once

#include "cli/command_line.h"

namespace simile::cli {

// Each function adds one command to the command line; AddProgramCommands adds `help`, `completion`
// and `man`. Every command has its own file, except that these three share one, and so do `load`,
// `reload`, `rollback` and `unload`.
void AddServeCommand(CommandLine& line);
void AddHealthCommand(CommandLine& line);
void AddSearchCommand(CommandLine& line);
void AddSimilarCommand(CommandLine& line);
void AddRecommendCommand(CommandLine& line);
void AddExplainCommand(CommandLine& line);
void AddLookupCommand(CommandLine& line);
void AddFetchCommand(CommandLine& line);
void AddFieldsCommand(CommandLine& line);
void AddInfoCommand(CommandLine& line);
void AddListCommand(CommandLine& line);
void AddLoadCommand(CommandLine& line);
void AddReloadCommand(CommandLine& line);
void AddRollbackCommand(CommandLine& line);
void AddUnloadCommand(CommandLine& line);
void AddInspectCommand(CommandLine& line);
void AddPlanCommand(CommandLine& line);
void AddVerifyCommand(CommandLine& line);
void AddBenchCommand(CommandLine& line);
void AddTopCommand(CommandLine& line);
void AddTuneCommand(CommandLine& line);
void AddTokenCommand(CommandLine& line);
void AddConfigCommand(CommandLine& line);
void AddDoctorCommand(CommandLine& line);
void AddVersionCommand(CommandLine& line);
void AddProgramCommands(CommandLine& line);

}  // namespace simile::cli
