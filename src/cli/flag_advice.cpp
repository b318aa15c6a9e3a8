#include "cli/flag_advice.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/nearest_name.h"
#include "cli/command_line.h"
#include "cli/output_text.h"

namespace simile::cli {
namespace {

// The files that hold vectors.
constexpr std::string_view kVectorFileEndings[] = {".npy", ".json", ".safetensors"};

// The flag that ends in the same word: "--score-threshold" for "--threshold", "-k" for "--top-k".
// Empty for none.
std::string EndsInSameWord(std::string_view name, std::span<const std::string> known) {
  const auto last_word = [](std::string_view flag) { return flag.substr(flag.rfind('-') + 1); };
  const auto found = std::ranges::find(known, last_word(name), last_word);
  return found == known.end() ? std::string() : *found;
}

bool NamesVectorFile(const std::string& text) {
  std::error_code error;
  return std::filesystem::exists(text, error) ||
         std::ranges::any_of(kVectorFileEndings,
                             [&](std::string_view ending) { return text.ends_with(ending); });
}

}  // namespace

absl::Status UnknownFlag(const CommandSpec& command, const std::string& name) {
  const std::vector<std::string> known = FlagNamesOf(command);
  std::string nearest = base::NearestName(name, known);
  if (nearest.empty()) nearest = EndsInSameWord(name, known);
  const std::string offer = base::DidYouMean(nearest);
  return absl::InvalidArgumentError(fmt::format(
      "{} has no flag {}{}{}", command.name, base::Quoted(name), offer.empty() ? "" : ".", offer));
}

absl::Status UnknownCommand(const ProgramSpec& program, const std::string& name) {
  const std::vector<std::string> known = CommandNames(program);
  if (name == "import" || name == "export") {
    return absl::InvalidArgumentError(fmt::format(
        "{} is a command of the Python package simile-search, which is not installed here or comes "
        "later on the PATH: python3 -m simile_search {}",
        base::Quoted(name), name));
  }
  const std::string offer = base::DidYouMean(base::NearestName(name, known));
  return absl::InvalidArgumentError(
      fmt::format("no command {}{}", base::Quoted(name),
                  offer.empty() ? fmt::format("; `{} --help` lists them", program.name)
                                : fmt::format(".{}", offer)));
}

absl::Status FlagBeforeCommand(const ProgramSpec& program, const std::vector<std::string>& texts) {
  const std::string name = texts.front().substr(0, texts.front().find('='));
  for (const std::string& text : texts) {
    const CommandSpec* command = FindCommand(program, text);
    const Argument* flag = command == nullptr ? nullptr : FindArgument(*command, name);
    if (flag == nullptr) continue;
    return absl::InvalidArgumentError(fmt::format("{} comes after the command: {} {} {}", name,
                                                  program.name, command->name, FlagText(*flag)));
  }
  const std::vector<std::string> known{kHelpFlag, "--version"};
  const std::string offer = base::DidYouMean(base::NearestName(name, known));
  return absl::InvalidArgumentError(
      fmt::format("{} has no flag {} before a command{}", program.name, base::Quoted(name),
                  offer.empty() ? fmt::format("; `{} --help` lists the commands", program.name)
                                : fmt::format(".{}", offer)));
}

std::string AwaitedAdvice(const Argument& flag, const std::string& text) {
  if (flag.name == "--vector" && !NamesVectorFile(text)) {
    return fmt::format("This takes vectors; `simile lookup {}` finds items by words.",
                       ShellWord(text));
  }
  return fmt::format("Did you mean {}?", flag.values == Values::kList
                                             ? ListFlag(flag.name, text)
                                             : fmt::format("{} {}", flag.name, ShellWord(text)));
}

}  // namespace simile::cli
