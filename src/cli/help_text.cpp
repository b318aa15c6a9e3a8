#include "cli/help_text.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/output_text.h"

namespace simile::cli {
namespace {

constexpr std::size_t kHelpWidth = 80;
constexpr std::size_t kNameColumnsMax = 28;  // a longer name gets its own line

// A name and its help text.
using HelpRow = std::pair<std::string, std::string>;

// Rows in two columns under a title; empty if there are no rows.
std::string Section(const std::string& title, const std::vector<HelpRow>& rows) {
  if (rows.empty()) return "";
  std::size_t column = 0;
  for (const HelpRow& row : rows) {
    const std::size_t width = row.first.size() + 4;  // two columns of indent and two of gap
    if (width <= kNameColumnsMax) column = std::max(column, width);
  }
  if (column == 0) column = kNameColumnsMax;
  std::string text = fmt::format("\n{}:\n", title);
  for (const auto& [name, help] : rows) {
    std::string start = fmt::format("  {}", name);
    if (start.size() + 2 > column) {
      text += fmt::format("{}\n", start);
      start.clear();
    }
    for (const std::string& line : Wrapped(help, kHelpWidth - column)) {
      text += fmt::format("{:<{}}{}\n", start, column, line);
      start.clear();
    }
  }
  return text;
}

std::string Paragraphs(const std::string& text) {
  std::string wrapped;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    wrapped += fmt::format("{}\n", fmt::join(Wrapped(line, kHelpWidth), "\n"));
  }
  return wrapped;
}

HelpRow MakeHelpRow(const Argument& argument) {
  return {FlagText(argument), ArgumentHelp(argument)};
}

// Escapes text for roff. Dashes and quotes stay ASCII, so that commands can be copied.
std::string Roff(const std::string& text) {
  std::string roff;
  for (const char letter : text) {
    switch (letter) {
      case '\\':
        roff += "\\e";
        break;
      case '-':
        roff += "\\-";
        break;
      case '\'':
        roff += "\\(aq";
        break;
      case '"':
        roff += "\\(dq";
        break;
      case '`':
        roff += "\\(ga";
        break;
      case '^':
        roff += "\\(ha";
        break;
      case '~':
        roff += "\\(ti";
        break;
      default:
        roff += letter;
    }
  }
  // A line that begins with a dot would be a request.
  return roff.starts_with('.') ? fmt::format("\\&{}", roff) : roff;
}

std::string Upper(std::string text) {
  for (char& letter : text) {
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return text;
}

// A paragraph with a bold name before it.
std::string Tagged(const std::string& name, const std::string& text) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", Roff(name), Roff(text));
}

// The lines of a text, without joining them into a paragraph.
std::string Lines(const std::string& text) {
  std::string roff;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    roff += fmt::format("{}{}\n", roff.empty() ? "" : ".br\n", Roff(line));
  }
  return roff;
}

std::string CommandSection(const ProgramSpec& program, const CommandSpec& command) {
  std::string text = fmt::format(".SS {}\n{}.\n.PP\n\\fB{}\\fR\n", Roff(command.name),
                                 Roff(command.help), Roff(UsageText(program, command)));
  for (const bool flags : {false, true}) {
    for (const Argument& argument : command.arguments) {
      if (argument.is_flag() == flags) text += Tagged(FlagText(argument), ArgumentHelp(argument));
    }
  }
  if (!command.footer.empty()) text += fmt::format(".PP\n{}", Lines(command.footer));
  return text;
}

// The list rule, which holds for all commands, from the first command that has one.
std::string ListParagraph(const ProgramSpec& program) {
  for (const CommandSpec& command : program.commands) {
    const std::string rule = ListRule(command);
    if (!rule.empty()) return fmt::format(".SH DESCRIPTION\n{}\n", Roff(rule));
  }
  return "";
}

}  // namespace

std::string ListRule(const CommandSpec& command) {
  const bool has_list = std::ranges::any_of(
      command.arguments, [](const Argument& flag) { return flag.values == Values::kList; });
  if (!has_list) return "";
  return "A flag with \",...\" takes several values, separated by commas, and may be repeated. A "
         "comma inside a value is written \\, in quotes: 'a\\,b'.";
}

std::string UsageText(const ProgramSpec& program, const CommandSpec& command) {
  std::string text = fmt::format("{} {}", program.name, command.name);
  for (const Argument& argument : command.arguments) {
    if (argument.is_flag() && argument.required) text += fmt::format(" {}", FlagText(argument));
  }
  text += " [OPTIONS]";
  for (const Argument& argument : command.arguments) {
    if (argument.is_flag()) continue;
    const char* more = argument.values == Values::kRepeated ? "..." : "";
    text += argument.required ? fmt::format(" {}{}", argument.name, more)
                              : fmt::format(" [{}{}]", argument.name, more);
  }
  return text;
}

std::string ProgramHelp(const ProgramSpec& program) {
  std::vector<HelpRow> commands;
  std::vector<std::string_view> about_program;
  for (const CommandSpec& command : program.commands) {
    if (command.about_program) {
      about_program.push_back(command.name);
    } else {
      commands.emplace_back(command.name, command.help);
    }
  }
  return fmt::format("{0}: {1}\nUsage: {0} COMMAND [OPTIONS]\n{2}\n{3}", program.name,
                     program.description, Section("Commands", commands),
                     Paragraphs(fmt::format("About the program itself: {}. More: COMMAND --help",
                                            fmt::join(about_program, ", "))));
}

std::string CommandHelp(const ProgramSpec& program, const CommandSpec& command) {
  std::vector<HelpRow> arguments;
  std::vector<HelpRow> flags{{"-h, --help", "Print this help and exit"}};
  for (const Argument& argument : command.arguments) {
    (argument.is_flag() ? flags : arguments).push_back(MakeHelpRow(argument));
  }
  std::string text = fmt::format("{}\nUsage: {}\n{}{}", command.help, UsageText(program, command),
                                 Section("Arguments", arguments), Section("Options", flags));
  if (const std::string rule = ListRule(command); !rule.empty()) {
    text += fmt::format("\n{}", Paragraphs(rule));
  }
  if (!command.footer.empty()) text += fmt::format("\n{}", Paragraphs(command.footer));
  return text;
}

std::string ManPage(const ProgramSpec& program) {
  const std::string version = program.version.substr(0, program.version.find(" ("));
  std::string text = fmt::format(
      ".TH {} 1 \"\" \"{}\" \"User Commands\"\n"
      ".nh\n.ad l\n"  // neither hyphens nor wide gaps in commands
      ".SH NAME\n{} \\- {}\n"
      ".SH SYNOPSIS\n\\fB{}\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
      "{}.SH COMMANDS\n",
      Upper(program.name), Roff(version), program.name, Roff(program.description), program.name,
      ListParagraph(program));
  for (const CommandSpec& command : program.commands) text += CommandSection(program, command);
  text += ".SH EXIT STATUS\n";
  text += Tagged("0", "Success.");
  text += Tagged("1", "Failure.");
  text += Tagged("64", "Wrong usage.");
  text += Tagged("130", "Ended by Ctrl-C.");
  text += ".SH ENVIRONMENT\n";
  text += Tagged("SIMILE_SERVER", "The server that commands call without --server.");
  text += Tagged("SIMILE_CA", "The authorities that commands trust without --ca.");
  text += Tagged("SIMILE_TOKEN_FILE, SIMILE_TOKEN",
                 "The file of the token, or the token itself, that commands send without "
                 "--token-file.");
  text += Tagged("SIMILE_CONFIG", "The settings file of serve without --config.");
  text +=
      Tagged("SIMILE_*",
             "One variable for each setting of serve; `simile config --print` lists the settings.");
  return text;
}

}  // namespace simile::cli
