// `help`, `completion` and `man` tell about the program itself.
#include <memory>
#include <optional>
#include <string>

#include <absl/status/statusor.h>
#include <fmt/format.h>

#include "base/message_text.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/completion_script.h"
#include "cli/errors.h"
#include "cli/flag_advice.h"
#include "cli/help_text.h"
#include "cli/man_page.h"

namespace simile::cli {
namespace {

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

// The shells, and what prints the completion for each.
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
