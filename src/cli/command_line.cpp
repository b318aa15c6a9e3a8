#include "cli/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/file_descriptor.h"
#include "base/message_text.h"
#include "base/utf8.h"
#include "cli/argument_parser.h"
#include "cli/errors.h"
#include "cli/help_text.h"
#include "cli/output_text.h"

namespace simile::cli {
namespace {

constexpr const char* kEmptyValue = "the value is empty";

std::string NotUtf8(const std::string& text) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = base::Utf8SequenceLength(rest);
    if (length == 0) return fmt::format("\"{}\" is not UTF-8", text);
    rest.remove_prefix(length);
  }
  return "";
}

// Parses the whole text as a number; errc() only on success.
template <typename Number>
std::errc ReadNumber(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return stop == end ? error : std::errc::invalid_argument;
}

std::string StoreWhole(const std::string& text, std::uint32_t min,
                       std::optional<std::uint32_t>& value) {
  std::uint32_t number = 0;
  const std::errc error = ReadNumber(text, number);
  if (error == std::errc::result_out_of_range) {
    return fmt::format("{} is too large", base::Quoted(text));
  }
  if (error != std::errc()) {
    return fmt::format("{} is not a whole number, {} or more", base::Quoted(text), min);
  }
  if (number < min) return fmt::format("{} is too small; give {} or more", number, min);
  value = number;
  return "";
}

std::string StoreReal(const std::string& text, std::optional<double>& value) {
  double number = 0;
  if (ReadNumber(text, number) != std::errc()) {
    return fmt::format("{} is not a number", base::Quoted(text));
  }
  value = number;
  return "";
}

std::string StoreText(const std::string& text, std::optional<std::string>& value) {
  if (text.empty()) return kEmptyValue;
  std::string wrong = NotUtf8(text);
  if (wrong.empty()) value = text;
  return wrong;
}

std::string StoreCollection(const std::string& text, std::optional<std::string>& name) {
  if (text.empty()) return "the name is empty";
  if (name && *name != text) {
    return fmt::format("two collections are named, {} and {}; give one", base::Quoted(*name),
                       base::Quoted(text));
  }
  return StoreText(text, name);
}

std::string StoreList(const std::string& text, std::vector<std::string>& values) {
  std::string wrong = NotUtf8(text);
  if (!wrong.empty()) return wrong;
  std::vector<std::string> split = SplitList(text);
  if (std::ranges::find(split, "") != split.end()) {
    return text.empty() ? std::string(kEmptyValue)
                        : fmt::format("there is an empty value in {}", base::Quoted(text));
  }
  values.insert(values.end(), split.begin(), split.end());
  return "";
}

// One value as a list flag takes it, quoted for a shell if necessary.
std::string ListWord(const std::string& value) {
  std::string escaped;
  for (const char letter : value) {
    if (letter == ',') escaped += '\\';
    escaped += letter;
  }
  return ShellWord(escaped);
}

// Whether --json is given, even on a line that cannot be parsed.
bool AsksForJson(const std::vector<std::string>& texts) {
  const auto end = std::ranges::find(texts, "--");
  return std::find(texts.begin(), end, "--json") != end;
}

int FailUsage(const absl::Status& status, const std::vector<std::string>& texts) {
  Fail(status, AsksForJson(texts));
  return kWrongUsage;
}

}  // namespace

Argument& Command::Add(const std::string& name, const std::string& kind, const std::string& help,
                       Values values, Store store) {
  // Puts the collection before every other argument. Pointers to a deque's elements stay valid.
  Argument& argument = name == kCollectionArgument ? spec_->arguments.emplace_front()
                                                   : spec_->arguments.emplace_back();
  last_ = &argument;
  argument.name = name;
  argument.kind = kind;
  argument.help = help;
  argument.values = values;
  argument.store = std::move(store);
  return argument;
}

Command& Command::Switch(const std::string& name, bool& value, const std::string& help) {
  Add(name, "", help, Values::kNone, [&value](const std::string& /*text*/) {
    value = true;
    return std::string();
  });
  return *this;
}

Command& Command::Text(const std::string& name, std::optional<std::string>& value,
                       const std::string& kind, const std::string& help) {
  Add(name, kind, help, Values::kOne,
      [&value](const std::string& text) { return StoreText(text, value); });
  return *this;
}

Command& Command::File(const std::string& name, std::optional<std::string>& value,
                       const std::string& kind, const std::string& help) {
  const auto store = [&value](const std::string& text) {
    value = text;
    return std::string();
  };
  Add(name, kind, help, Values::kOne, store);
  return Paths(PathKind::kFile);
}

Command& Command::Positional(const std::string& name, std::optional<std::string>& value,
                             const std::string& help) {
  return Text(name, value, "", help);
}

Command& Command::Texts(const std::string& name, std::vector<std::string>& values,
                        const std::string& kind, const std::string& help) {
  Add(name, kind, help, Values::kRepeated, [&values](const std::string& text) {
    std::string wrong = NotUtf8(text);
    if (wrong.empty()) values.push_back(text);
    return wrong;
  });
  return *this;
}

Command& Command::List(const std::string& name, std::vector<std::string>& values,
                       const std::string& kind, const std::string& help) {
  Add(name, kind, help, Values::kList,
      [&values](const std::string& text) { return StoreList(text, values); });
  return *this;
}

Command& Command::ListValue(const std::string& name, std::optional<std::string>& value,
                            const std::string& kind, const std::string& help) {
  Add(name, kind, help, Values::kOne, [&value](const std::string& text) {
    std::vector<std::string> values;
    std::string wrong = StoreList(text, values);
    if (wrong.empty() && values.size() > 1) {
      const std::string meant = fmt::format("{}", fmt::join(values, ","));
      wrong = fmt::format("takes one value; a comma inside it is written \\, as in {}",
                          ListWord(meant));
    }
    if (wrong.empty()) value = std::move(values.front());
    return wrong;
  });
  return *this;
}

Command& Command::Number(const std::string& name, std::optional<std::uint32_t>& value,
                         const std::string& kind, const std::string& help, std::uint32_t min) {
  Add(name, kind, help, Values::kOne,
      [&value, min](const std::string& text) { return StoreWhole(text, min, value); });
  return *this;
}

Command& Command::Real(const std::string& name, std::optional<double>& value,
                       const std::string& kind, const std::string& help) {
  Add(name, kind, help, Values::kOne,
      [&value](const std::string& text) { return StoreReal(text, value); });
  return *this;
}

Command& Command::Collection(std::optional<std::string>& name, const std::string& help) {
  const auto store_as = [&name, spec = spec_](const char* given_as) {
    return [&name, spec, given_as](const std::string& text) {
      spec->collection_given_as = given_as;
      return StoreCollection(text, name);
    };
  };
  Add(kCollectionFlag, "NAME", fmt::format("The same as {}", kCollectionArgument), Values::kOne,
      store_as(kCollectionFlag));
  Add(kCollectionArgument, "", help, Values::kOne, store_as(kCollectionArgument));
  last_->store_meant = [spec = spec_](const std::string& text, std::string meant) {
    spec->collection_text = text;
    spec->collection_meant = std::move(meant);
  };
  return *this;
}

Command& Command::Required() {
  last_->required = true;
  return *this;
}

Command& Command::Choices(std::vector<std::string> choices) {
  last_->choices = std::move(choices);
  return *this;
}

Command& Command::Paths(PathKind paths) {
  last_->paths = paths;
  return *this;
}

Command& Command::Check(std::function<absl::Status()> check) {
  spec_->checks.push_back(std::move(check));
  return *this;
}

Command& Command::AboutProgram() {
  spec_->about_program = true;
  return *this;
}

Command& Command::Footer(const std::string& text) {
  spec_->footer = text;
  return *this;
}

Command& Command::Run(std::function<int()> run) {
  spec_->run = std::move(run);
  return *this;
}

std::vector<std::string> SplitList(const std::string& text) {
  std::vector<std::string> values(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == ',') {
      values.back() += text[++i];
    } else if (text[i] == ',') {
      values.emplace_back();
    } else {
      values.back() += text[i];
    }
  }
  return values;
}

std::string ListFlag(const std::string& name, const std::string& value) {
  return fmt::format("{}{}{}", name, value.starts_with('-') ? "=" : " ", ListWord(value));
}

CommandLine::CommandLine(const std::string& description, const std::string& version)
    : program_{"simile", description, version, {}} {}

Command CommandLine::Add(const std::string& name, const std::string& help) {
  CommandSpec& spec = program_.commands.emplace_back();
  spec.name = name;
  spec.help = help;
  return Command(spec);
}

int CommandLine::Run(int argument_count, const char* const* arguments) {
  const std::vector<std::string> texts(arguments + std::min(argument_count, 1),
                                       arguments + argument_count);
  if (texts.empty()) {
    fmt::print("{}", ProgramHelp(program_));
    return kWrongUsage;
  }
  const std::string& first = texts.front();
  if (first == kHelpFlag || first == "-h") {
    fmt::print("{}", ProgramHelp(program_));
    return kSucceeded;
  }
  const bool asks_for_version = first == "--version";
  if (asks_for_version && texts.size() == 1) {
    fmt::print("{}\n", program_.version);
    return kSucceeded;
  }
  if (first.starts_with('-') && !asks_for_version)
    return FailUsage(FlagBeforeCommand(program_, texts), texts);
  const CommandSpec* command = FindCommand(program_, asks_for_version ? "version" : first);
  if (command == nullptr) return FailUsage(UnknownCommand(program_, first), texts);
  const absl::StatusOr<ParsedLine> parsed = ParseArguments(*command, std::span(texts).subspan(1));
  if (!parsed.ok()) {
    const int code = FailUsage(parsed.status(), texts);
    base::WriteAll(STDERR_FILENO, fmt::format("`simile {} --help` explains\n", command->name));
    return code;
  }
  if (*parsed == ParsedLine::kAsksForHelp) {
    fmt::print("{}", CommandHelp(program_, *command));
    return kSucceeded;
  }
  for (const auto& check : command->checks) {
    if (const absl::Status wrong = check(); !wrong.ok()) return FailUsage(wrong, texts);
  }
  return command->run();
}

}  // namespace simile::cli
