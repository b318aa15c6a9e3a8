#include "cli/command_tree.h"

#include <algorithm>

#include <fmt/format.h>

namespace simile::cli {

const CommandSpec* FindCommand(const ProgramSpec& program, const std::string& name) {
  const auto found = std::ranges::find(program.commands, name, &CommandSpec::name);
  return found == program.commands.end() ? nullptr : &*found;
}

const Argument* FindArgument(const CommandSpec& command, const std::string& name) {
  const auto found = std::ranges::find(command.arguments, name, &Argument::name);
  return found == command.arguments.end() ? nullptr : &*found;
}

std::vector<std::string> CommandNames(const ProgramSpec& program) {
  std::vector<std::string> names;
  for (const CommandSpec& command : program.commands) names.push_back(command.name);
  return names;
}

std::vector<std::string> ListFlagNames(const CommandSpec& command) {
  std::vector<std::string> names{kHelpFlag};
  for (const Argument& argument : command.arguments) {
    if (argument.is_flag()) names.push_back(argument.name);
  }
  return names;
}

std::string FlagText(const Argument& flag) {
  if (!flag.is_flag()) return flag.name;
  switch (flag.values) {
    case Values::kNone:
      return flag.name;
    case Values::kOne:
      return fmt::format("{} {}", flag.name, flag.kind);
    case Values::kRepeated:
      return fmt::format("{} {} ...", flag.name, flag.kind);
    case Values::kList:
      return fmt::format("{} {},...", flag.name, flag.kind);
  }
  return flag.name;
}

std::string ArgumentHelp(const Argument& argument) {
  return argument.required ? fmt::format("{} (required)", argument.help) : argument.help;
}

}  // namespace simile::cli
