// `help`, `completion` and `man` describe the program itself.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>
#include <fmt/format.h>

#include "base/message_text.h"
#include "cli/argument_parser.h"
#include "cli/command_line.h"
#include "cli/command_tree.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/help_text.h"

namespace simile::cli {
namespace {

// Puts a backslash before each of `characters` in the text.
std::string Escaped(const std::string& text, std::string_view characters) {
  std::string escaped;
  for (const char letter : text) {
    if (characters.find(letter) != std::string_view::npos) escaped += '\\';
    escaped += letter;
  }
  return escaped;
}

// Escapes text for single quotes in bash and zsh.
std::string InQuotes(const std::string& text) {
  std::string quoted;
  for (const char letter : text) {
    if (letter == '\'') {
      quoted += R"('\'')";
    } else {
      quoted += letter;
    }
  }
  return quoted;
}

// The command that makes bash offer paths; empty if the value is no path. NAME=FOLDER of a flag
// needs no special case, because bash splits it at the equals sign.
std::string BashPaths(PathKind paths) {
  switch (paths) {
    case PathKind::kFile:
      return "compopt -o default";
    case PathKind::kFolder:
      return "compopt -o dirnames";
    case PathKind::kNamedFolder:
      return "_simile_named_folder";
    case PathKind::kNone:
      return "";
  }
  return "";
}

// The lines of a bash `case` for one command: what may follow each flag that takes a value.
std::string BashValues(const CommandSpec& command) {
  std::string lines;
  for (const Argument& argument : command.arguments) {
    if (!argument.is_flag() || !argument.takes_value()) continue;
    std::string answer = "words=''";
    if (!argument.choices.empty()) {
      answer = fmt::format("words='{}'", fmt::join(argument.choices, " "));
    } else if (argument.paths != PathKind::kNone) {
      answer = BashPaths(argument.paths);
    }
    lines += fmt::format("    '{} {}') {} ;;\n", command.name, argument.name, answer);
  }
  return lines;
}

// The line of a bash `case` for the positional arguments of a command.
std::string BashArguments(const CommandSpec& command) {
  for (const Argument& argument : command.arguments) {
    if (argument.is_flag()) continue;
    if (argument.paths != PathKind::kNone) {
      return fmt::format("    {}) {} ;;\n", command.name, BashPaths(argument.paths));
    }
    if (!argument.choices.empty()) {
      return fmt::format("    {}) words='{}' ;;\n", command.name, fmt::join(argument.choices, " "));
    }
  }
  return "";
}

// `:FILE:_files`, `:NAME:(a b)`; the action with which zsh's _arguments completes a value or an
// argument.
std::string ZshAction(const Argument& argument) {
  const std::string& kind = argument.is_flag() ? argument.kind : argument.name;
  std::string action = " ";
  if (!argument.choices.empty()) {
    action = fmt::format("({})", fmt::join(argument.choices, " "));
  } else if (argument.paths == PathKind::kFile) {
    action = "_files";
  } else if (argument.paths == PathKind::kFolder) {
    action = "_files -/";
  } else if (argument.paths == PathKind::kNamedFolder) {
    action = "{compset -P \"*=\" && _files -/}";
  }
  return fmt::format(":{}:{}", Escaped(kind, ":\\"), action);
}

// The word of zsh's _arguments for a flag or argument.
std::string ZshArgument(const Argument& argument) {
  if (!argument.is_flag()) return fmt::format("'{}'", InQuotes(ZshAction(argument)));
  const bool again = argument.values == Values::kRepeated || argument.values == Values::kList;
  std::string word = fmt::format("{}{}", again ? "*" : "", argument.name);
  // `--id=` takes its value after `=` or as the next word, `-k+` in the same word or as the next.
  if (argument.takes_value()) word += argument.name.starts_with("--") ? "=" : "+";
  word += fmt::format("[{}]", Escaped(argument.help, "[]:\\"));
  if (argument.takes_value()) word += ZshAction(argument);
  return fmt::format("'{}'", InQuotes(word));
}

// Escapes text for single quotes in fish, which knows the escapes \\ and \'.
std::string InFishQuotes(const std::string& text) { return Escaped(text, "\\'"); }

// The line of fish for a flag or argument; empty if fish has nothing to offer.
std::string FishArgument(const ProgramSpec& program, const CommandSpec& command,
                         const Argument& argument) {
  std::string line =
      fmt::format("complete -c {} -n '__fish_seen_subcommand_from {}'", program.name, command.name);
  if (argument.is_flag()) {
    const bool is_long = argument.name.starts_with("--");
    line += fmt::format(" {} {}", is_long ? "-l" : "-s", argument.name.substr(is_long ? 2 : 1));
    line += fmt::format(" -d '{}'", InFishQuotes(argument.help));
    if (argument.takes_value()) line += " -r";
  } else if (argument.choices.empty() && argument.paths == PathKind::kNone) {
    return "";
  }
  if (argument.paths == PathKind::kFolder) {
    line += " -f -a '(__fish_complete_directories)'";
  } else if (argument.takes_value()) {  // files, also after NAME=, or none
    line += argument.paths == PathKind::kNone ? " -f" : " -F";
  }
  if (!argument.choices.empty()) {
    line += fmt::format(" -a '{}'", fmt::join(argument.choices, " "));
  }
  return fmt::format("{}\n", line);
}

// The scripts complete commands, flags, values of flags with choices, and the names of files and
// folders.
std::string BashCompletion(const ProgramSpec& program) {
  std::string flags;
  std::string values;
  std::string arguments;
  for (const CommandSpec& command : program.commands) {
    flags += fmt::format("    {}) words='{}' ;;\n", command.name,
                         fmt::join(ListFlagNames(command), " "));
    values += BashValues(command);
    arguments += BashArguments(command);
  }
  return fmt::format(
      R"(# Completion of {0} for bash, made by `{0} completion bash`. To use it in this shell:
#   source <({0} completion bash)
_{0}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command=${{COMP_WORDS[1]}} words='' after_equals=''
  # bash splits --flag=value at the equals sign.
  if [[ $current == = ]]; then
    current='' after_equals=1
  elif [[ $before == = ]]; then
    before=${{COMP_WORDS[COMP_CWORD - 2]}} after_equals=1
  fi
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    words='--help --version {1}'
  else
    case "$command $before" in
{2}    *) _{0}_words ;;
    esac
  fi
  local IFS=$' \t\n'
  # shellcheck disable=SC2207 # the words hold no spaces
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}

# Sets `words` where no value of a flag is to be completed.
_{0}_words() {{
  if [[ $current == -* ]]; then
    case $command in
{3}    esac
    return
  fi
  case $command in
{4}  esac
}}

# Offers the folder of NAME=FOLDER, and nothing for NAME.
_{0}_named_folder() {{
  if [[ $current == *=* ]]; then  # COMP_WORDBREAKS may lack the equals sign
    words=$(compgen -d -P "${{current%%=*}}=" -S / -- "${{current#*=}}")
    compopt -o nospace
  elif [[ $after_equals ]]; then
    compopt -o dirnames
  fi
}}

complete -F _{0} {0}
)",
      program.name, fmt::join(CommandNames(program), " "), values, flags, arguments);
}

std::string ZshCompletion(const ProgramSpec& program) {
  std::string commands;
  std::string cases;
  for (const CommandSpec& command : program.commands) {
    commands += fmt::format("    '{}:{}'\n", command.name, InQuotes(Escaped(command.help, ":\\")));
    std::string words = "'(-h --help)'{-h,--help}'[Print this help and exit]'";
    for (const Argument& argument : command.arguments) {
      words += fmt::format(" \\\n        {}", ZshArgument(argument));
    }
    cases += fmt::format("    {})\n      _arguments {}\n      ;;\n", command.name, words);
  }
  return fmt::format(
      R"(#compdef {0}
# Completion of {0} for zsh, made by `{0} completion zsh`. Keep it as _{0} in a folder of $fpath, or:
#   source <({0} completion zsh)
_{0}() {{
  local -a commands=(
{1}  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
{2}  esac
}}

if [[ ${{funcstack[1]}} == _{0} ]]; then
  _{0} "$@"
else
  compdef _{0} {0}
fi
)",
      program.name, commands, cases);
}

std::string FishCompletion(const ProgramSpec& program) {
  std::string lines = fmt::format(
      "# Completion of {0} for fish, made by `{0} completion fish`. To keep it:\n"
      "#   {0} completion fish > ~/.config/fish/completions/{0}.fish\n"
      "complete -c {0} -f\n"
      "complete -c {0} -s h -l help -d 'Print this help and exit'\n"
      "complete -c {0} -n __fish_use_subcommand -l version -d 'Print the version and exit'\n",
      program.name);
  for (const CommandSpec& command : program.commands) {
    lines += fmt::format("complete -c {} -n __fish_use_subcommand -a {} -d '{}'\n", program.name,
                         command.name, InFishQuotes(command.help));
  }
  for (const CommandSpec& command : program.commands) {
    for (const Argument& argument : command.arguments) {
      lines += FishArgument(program, command, argument);
    }
  }
  return lines;
}

using OptionalName = std::optional<std::string>;

absl::Status CheckCommand(const ProgramSpec& program, const OptionalName& name) {
  const bool known = !name || FindCommand(program, *name) != nullptr;
  return known ? absl::OkStatus() : UnknownCommand(program, *name);
}

int RunHelp(const ProgramSpec& program, const OptionalName& name) {
  fmt::print("{}",
             name ? CommandHelp(program, *FindCommand(program, *name)) : ProgramHelp(program));
  return kSucceeded;
}

// The shells, and the function that makes each one's script.
struct ShellCompletion {
  const char* shell;
  std::string (*script)(const ProgramSpec& program);
};
constexpr ShellCompletion kCompletions[] = {
    {"bash", BashCompletion}, {"zsh", ZshCompletion}, {"fish", FishCompletion}};

absl::StatusOr<std::string> CompletionFor(const ProgramSpec& program, const std::string& shell) {
  for (const ShellCompletion& completion : kCompletions) {
    if (completion.shell == shell) return completion.script(program);
  }
  return absl::InvalidArgumentError(
      fmt::format("no completion for {}; give bash, zsh or fish", base::Quoted(shell)));
}

}  // namespace

void AddProgramCommands(CommandLine& line) {
  const ProgramSpec& program = line.program();
  auto shell = std::make_shared<OptionalName>();
  line.Add("completion", "Print completion for a shell")
      .AboutProgram()
      .Positional("SHELL", *shell, "bash, zsh or fish")
      .Required()
      .Choices({"bash", "zsh", "fish"})
      .Check([&program, shell] { return CompletionFor(program, **shell).status(); })
      .Footer(fmt::format("source <({0} completion bash)\n"
                          "To keep it, write it to ~/.local/share/bash-completion/completions/{0} "
                          "(bash), to _{0} in a folder of $fpath (zsh), or to "
                          "~/.config/fish/completions/{0}.fish.",
                          program.name))
      .Run([&program, shell] {
        fmt::print("{}", *CompletionFor(program, **shell));
        return kSucceeded;
      });
  line.Add("man", "Print the manual page")
      .AboutProgram()
      .Footer(fmt::format("{} man | man -l -", program.name))
      .Run([&program] {
        fmt::print("{}", ManPage(program));
        return kSucceeded;
      });
  auto name = std::make_shared<OptionalName>();
  line.Add("help", "Explain a command")
      .AboutProgram()
      .Positional("COMMAND", *name, "The command (default: list all)")
      .Choices(CommandNames(program))
      .Check([&program, name] { return CheckCommand(program, *name); })
      .Run([&program, name] { return RunHelp(program, *name); });
}

}  // namespace simile::cli
