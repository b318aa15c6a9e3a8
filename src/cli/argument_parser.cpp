#include "cli/argument_parser.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/nearest_name.h"
#include "cli/command_line.h"
#include "cli/output_text.h"

namespace simile::cli {
namespace {

// Endings of files that hold vectors.
constexpr std::string_view kVectorFileEndings[] = {".npy", ".json", ".safetensors"};

// The known flag that ends in the same word: "--score-threshold" for "--threshold", "-k" for
// "--top-k". Empty if there is none.
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

// A text that begins with a dash, split into flag and value.
struct FlagToken {
  std::string name;                  // "--id", "-k"
  std::optional<std::string> value;  // the value in the same text: `--id=a`, `-k5`
};

FlagToken TakeApart(const CommandSpec& command, const std::string& text) {
  const std::size_t equals = text.find('=');
  const bool is_short = !text.starts_with("--") && text.size() > 2;
  if (is_short && FindArgument(command, text.substr(0, 2)) != nullptr) {
    return {text.substr(0, 2), text.substr(equals == 2 ? 3 : 2)};
  }
  if (equals == std::string::npos) return {text, std::nullopt};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// A text that is neither a flag nor a flag's value.
struct Positional {
  std::string text;
  // If it follows a flag's value: what was probably meant, `--title "Toy Story"`. Else empty.
  std::string meant;
};

bool IsHelp(const std::string& name) { return name == kHelpFlag || name == "-h"; }

// `search has no flag "--colection". Did you mean "--collection"?` If no flag has a near name,
// offers a flag that ends in the same word.
absl::Status UnknownFlag(const CommandSpec& command, const std::string& name) {
  const std::vector<std::string> known = ListFlagNames(command);
  std::string nearest = base::NearestName(name, known);
  if (nearest.empty()) nearest = EndsInSameWord(name, known);
  const std::string offer = base::DidYouMean(nearest);
  return absl::InvalidArgumentError(fmt::format(
      "{} has no flag {}{}{}", command.name, base::Quoted(name), offer.empty() ? "" : ".", offer));
}

// Advice for a text that probably lacks its flag: `Did you mean --title "Toy Story"?`
std::string AwaitedAdvice(const Argument& flag, const std::string& text) {
  if (flag.name == "--vector" && !NamesVectorFile(text)) {
    return fmt::format("This takes vectors; `simile lookup {}` finds items by words.",
                       ShellWord(text));
  }
  return fmt::format("Did you mean {}?", flag.values == Values::kList
                                             ? ListFlag(flag.name, text)
                                             : fmt::format("{} {}", flag.name, ShellWord(text)));
}

// Parses one line. Used once.
class LineParser {
 public:
  LineParser(const CommandSpec& command, std::span<const std::string> texts)
      : command_(command), texts_(texts) {
    for (const Argument& argument : command.arguments) {
      if (!argument.is_flag()) places_.push_back(&argument);
    }
  }

  absl::StatusOr<ParsedLine> Parse() {
    bool flags_ended = false;
    while (next_ < texts_.size()) {
      const std::string& text = texts_[next_++];
      const bool is_positional = !text.starts_with('-') || text == "-";
      if (!is_positional) value_of_ = nullptr;
      if (!flags_ended && text == "--") {
        flags_ended = true;
      } else if (flags_ended || is_positional) {
        const bool follows_value = !flags_ended && value_of_ != nullptr;
        positionals_.push_back({text, follows_value ? MeantWithValue(text) : ""});
      } else {
        const FlagToken token = TakeApart(command_, text);
        if (IsHelp(token.name)) return ParsedLine::kAsksForHelp;
        if (absl::Status status = TakeFlag(token); !status.ok()) return status;
      }
    }
    if (absl::Status status = PlacePositionals(); !status.ok()) return status;
    if (absl::Status status = CheckRequired(); !status.ok()) return status;
    return ParsedLine::kToRun;
  }

 private:
  absl::Status TakeFlag(const FlagToken& token) {
    const Argument* flag = FindArgument(command_, token.name);
    if (flag == nullptr) return UnknownFlag(command_, token.name);
    if (flag->takes_value()) {
      const std::optional<std::string> value = token.value ? token.value : NextValue();
      if (!value) {
        return absl::InvalidArgumentError(
            fmt::format("{} needs a value: {}", flag->name, FlagText(*flag)));
      }
      // A number or a path is complete; a text or a list may continue in the next text.
      const bool may_go_on = flag->values == Values::kList || flag->kind == "TEXT";
      value_of_ = may_go_on ? flag : nullptr;
      value_ = *value;
      return Store(*flag, *value);
    }
    const bool truth_follows =
        next_ < texts_.size() && (texts_[next_] == "true" || texts_[next_] == "false");
    if (token.value || truth_follows) {
      return absl::InvalidArgumentError(fmt::format("{} takes no value", flag->name));
    }
    return Store(*flag, "");
  }

  // The flag before a text, with the text joined to its value: `--title "Toy Story"`.
  std::string MeantWithValue(const std::string& text) {
    value_ += (value_of_->values == Values::kList ? "," : " ") + text;
    return fmt::format("{} {}", value_of_->name, ShellWord(value_));
  }

  // The text after a flag, unless this text is itself a flag of the command.
  std::optional<std::string> NextValue() {
    if (next_ == texts_.size()) return std::nullopt;
    const std::string& text = texts_[next_];
    const bool is_flag = text.starts_with('-') &&
                         (IsHelp(text) || FindArgument(command_, TakeApart(command_, text).name));
    if (is_flag) return std::nullopt;
    ++next_;
    return text;
  }

  absl::Status Store(const Argument& argument, const std::string& text) {
    const bool again = !given_.insert(&argument).second;
    if (again && argument.values == Values::kOne) {
      return absl::InvalidArgumentError(fmt::format("{} is given twice", argument.name));
    }
    if (argument.name == kCollectionFlag) collection_ = text;
    const std::string wrong = argument.store(text);
    if (wrong.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format("{}: {}", argument.name, wrong));
  }

  bool IsGiven(const Argument& argument) const {
    if (argument.name == kCollectionArgument && NamesCollectionByFlag()) return true;
    return given_.contains(&argument);
  }

  bool NamesCollectionByFlag() const {
    return given_.contains(FindArgument(command_, kCollectionFlag));
  }

  // Whether the line leaves out the collection, so that its first text is the argument after it.
  bool LeavesOutCollection() const {
    if (places_.empty() || places_.front()->name != kCollectionArgument) return false;
    const auto needed = static_cast<std::size_t>(std::count_if(
        places_.begin() + 1, places_.end(), [](const Argument* each) { return each->required; }));
    if (!NamesCollectionByFlag()) {
      return !places_.front()->required && positionals_.size() <= needed;
    }
    if (positionals_.size() <= needed) return true;
    // The first text is an optional argument, unless it only repeats --collection.
    return positionals_.size() < places_.size() && positionals_.front().text != collection_;
  }

  absl::Status PlacePositionals() {
    std::size_t place = LeavesOutCollection() ? 1 : 0;
    for (const auto& [text, meant] : positionals_) {
      if (place == places_.size()) return OneTooMany(text);
      const Argument& argument = *places_[place];
      if (absl::Status status = Store(argument, text); !status.ok()) return status;
      if (argument.store_meant && !meant.empty()) argument.store_meant(text, meant);
      if (argument.values != Values::kRepeated) ++place;
    }
    return absl::OkStatus();
  }

  // `fetch takes only COLLECTION; "heat" is one too many. Did you mean --id heat?`
  absl::Status OneTooMany(const std::string& text) const {
    std::vector<std::string> names;
    for (const Argument* place : places_) names.push_back(place->name);
    const std::string takes =
        names.empty() ? "no arguments" : fmt::format("only {}", fmt::join(names, " and "));
    return absl::InvalidArgumentError(fmt::format("{} takes {}; {} is one too many. {}",
                                                  command_.name, takes, base::Quoted(text),
                                                  AdviceFor(text)));
  }

  // Advice for an argument too many.
  std::string AdviceFor(const std::string& text) const {
    for (const Argument& argument : command_.arguments) {
      if (argument.values != Values::kList || !given_.contains(&argument)) continue;
      return fmt::format("Join several values by commas: {} A,B", argument.name);
    }
    for (const Argument& argument : command_.arguments) {
      // A stray text is most often a title for commands that compare items, and a folder for a
      // reload.
      const bool awaited = argument.is_flag() && (argument.required || argument.name == "--title" ||
                                                  argument.name == "--folder");
      if (!awaited || given_.contains(&argument)) continue;
      return AwaitedAdvice(argument, text);
    }
    return "Write a text that holds spaces in quotes.";
  }

  absl::Status CheckRequired() const {
    for (const Argument& argument : command_.arguments) {
      if (argument.required && !IsGiven(argument)) return Missing(argument);
    }
    return absl::OkStatus();
  }

  // The error of a missing argument. Explains, too, that a single text names the collection, as in
  // `recommend user_00042`.
  absl::Status Missing(const Argument& argument) const {
    std::string message = fmt::format("{} is required", FlagText(argument));
    const Argument* collection = FindArgument(command_, kCollectionArgument);
    if (argument.is_flag() && collection != nullptr && given_.contains(collection)) {
      message += fmt::format("; {} alone names the collection. {}",
                             base::Quoted(positionals_.front().text),
                             AwaitedAdvice(argument, positionals_.front().text));
    }
    return absl::InvalidArgumentError(message);
  }

  const CommandSpec& command_;
  const std::span<const std::string> texts_;
  std::size_t next_ = 0;
  std::vector<const Argument*> places_;  // of positional arguments
  std::vector<Positional> positionals_;
  const Argument* value_of_ = nullptr;  // the flag whose value comes just before; null if none does
  std::string value_;                   // this value, joined with the positionals after it
  std::set<const Argument*> given_;
  std::string collection_;  // given by --collection
};

}  // namespace

absl::StatusOr<ParsedLine> ParseArguments(const CommandSpec& command,
                                          std::span<const std::string> texts) {
  return LineParser(command, texts).Parse();
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

}  // namespace simile::cli
