#include "cli/command_line.h"

#include <charconv>
#include <deque>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/nearest_name.h"
#include "base/utf8.h"
#include "cli/exit_code.h"

namespace simile::cli {
namespace {

// Checks numbers before CLI11 does: its messages are unclear, and it treats "" as "not given".
template <typename Number>
std::string NotA(const char* what, const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool read = error == std::errc() && stop == end && !text.empty();
  return read ? "" : fmt::format("\"{}\" is not {}", text, what);
}

std::string NotWhole(const std::string& text) {
  return NotA<std::uint32_t>("a whole number from 0 to 4294967295", text);
}

std::string NotUtf8(const std::string& text) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = base::Utf8SequenceLength(rest);
    if (length == 0) return fmt::format("\"{}\" is not UTF-8", text);
    rest.remove_prefix(length);
  }
  return "";
}

std::string NotReal(const std::string& text) { return NotA<double>("a number", text); }

}  // namespace

Command::Command(CLI::App& app, std::function<int()>& run) : app_(&app), run_(&run) {}

Command& Command::Switch(const std::string& names, bool& value, const std::string& help) {
  last_ = app_->add_flag(names, value, help);
  return *this;
}

Command& Command::Text(const std::string& names, std::optional<std::string>& value,
                       const std::string& kind, const std::string& help) {
  last_ = app_->add_option(names, value, help)->type_name(kind)->check(NotUtf8);
  return *this;
}

Command& Command::File(const std::string& names, std::optional<std::string>& value,
                       const std::string& kind, const std::string& help) {
  last_ = app_->add_option(names, value, help)->type_name(kind);
  return *this;
}

Command& Command::Positional(const std::string& name, std::optional<std::string>& value,
                             const std::string& help) {
  last_ = app_->add_option(name, value, help)->type_name("")->check(NotUtf8);
  return *this;
}

Command& Command::Texts(const std::string& names, std::vector<std::string>& values,
                        const std::string& kind, const std::string& help) {
  last_ = app_->add_option(names, values, help)->type_name(kind)->check(NotUtf8);
  return *this;
}

Command& Command::List(const std::string& names, std::vector<std::string>& values,
                       const std::string& kind, const std::string& help) {
  last_ = app_->add_option(names, values, help)->type_name(kind)->delimiter(',')->check(NotUtf8);
  return *this;
}

Command& Command::Number(const std::string& names, std::optional<std::uint32_t>& value,
                         const std::string& kind, const std::string& help) {
  last_ = app_->add_option(names, value, help)->type_name(kind)->check(NotWhole);
  return *this;
}

Command& Command::Real(const std::string& names, std::optional<double>& value,
                       const std::string& kind, const std::string& help) {
  last_ = app_->add_option(names, value, help)->type_name(kind)->check(NotReal);
  return *this;
}

Command& Command::Required() {
  last_->required();
  return *this;
}

Command& Command::Renamed(const std::string& former, const std::string& present) {
  const std::string message = fmt::format("{} is called {} now", former, present);
  app_->add_option_function<std::vector<std::string>>(
          former,
          [message](const auto&) {
            throw CLI::ArgumentMismatch(message);  // CommandLine::Run catches and prints it
          })
      ->expected(0, 1)
      ->group("");  // no group: not in the help
  return *this;
}

Command& Command::Footer(const std::string& text) {
  app_->footer(text);
  return *this;
}

Command& Command::Run(std::function<int()> run) {
  *run_ = std::move(run);
  return *this;
}

struct CommandLine::Parser {
  explicit Parser(const std::string& description) : app(description, "simile") {}

  CLI::App app;
  std::deque<std::pair<CLI::App*, std::function<int()>>> commands;  // references stay valid
};

CommandLine::CommandLine(const std::string& description, const std::string& version)
    : parser_(std::make_unique<Parser>(description)) {
  CLI::App& app = parser_->app;
  app.set_version_flag("--version", version, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.footer(
      "`simile COMMAND --help` explains a command.\n"
      "Exit codes: 0 success, 1 failure, 64 wrong usage; `health` has its own.");
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.require_subcommand(0, 1);
}

CommandLine::~CommandLine() = default;

Command CommandLine::Add(const std::string& name, const std::string& help) {
  CLI::App* app = parser_->app.add_subcommand(name, help);
  app->group("Commands");
  app->get_formatter()->column_width(34);
  auto& command = parser_->commands.emplace_back(app, nullptr);
  return {*app, command.second};
}

int CommandLine::Run(int argument_count, const char* const* arguments) {
  CLI::App& app = parser_->app;
  if (argument_count < 2) {
    fmt::print("{}", app.help());
    return kWrongUsage;
  }
  std::vector<std::string> names;
  for (const auto& command : parser_->commands) names.push_back(command.first->get_name());
  const std::string_view first = arguments[1];
  if (!first.starts_with('-') && std::ranges::find(names, first) == names.end()) {
    const std::string offer = base::DidYouMean(base::NearestName(first, names));
    Fail(absl::InvalidArgumentError(
        fmt::format("no command \"{}\"{}", first,
                    offer.empty() ? "; `simile --help` lists them" : "." + offer)));
    return kWrongUsage;
  }
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::Success& asked_for_help) {
    return app.exit(asked_for_help);
  } catch (const CLI::ParseError& error) {
    const bool in_command = !app.get_subcommands().empty();
    Fail(absl::InvalidArgumentError(
        fmt::format("{}\n`simile {}--help` explains", error.what(),
                    in_command ? app.get_subcommands().front()->get_name() + " " : "")));
    return kWrongUsage;
  }
  for (const auto& [command, run] : parser_->commands) {
    if (command->parsed()) return run();
  }
  fmt::print("{}", app.help());
  return kWrongUsage;
}

}  // namespace simile::cli
