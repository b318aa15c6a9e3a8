#include "cli/man_page.h"

#include <cctype>
#include <sstream>

#include <fmt/format.h>

#include "cli/help_text.h"

namespace simile::cli {
namespace {

// Text as roff prints it: dashes and quotes stay ASCII, so that commands can be copied.
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
  return roff.starts_with('.') ? fmt::format("\\&{}", roff) : roff;  // else a request
}

std::string Upper(std::string text) {
  for (char& letter : text) {
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return text;
}

// A paragraph with its name in bold before it.
std::string Tagged(const std::string& name, const std::string& text) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", Roff(name), Roff(text));
}

// Each line by itself.
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
      if (argument.is_flag() == flags) text += Tagged(FlagText(argument), HelpOf(argument));
    }
  }
  if (!command.footer.empty()) text += fmt::format(".PP\n{}", Lines(command.footer));
  return text;
}

// What to know of all commands: the list rule, from the first command that has one.
std::string ListParagraph(const ProgramSpec& program) {
  for (const CommandSpec& command : program.commands) {
    const std::string rule = ListRule(command);
    if (!rule.empty()) return fmt::format(".SH DESCRIPTION\n{}\n", Roff(rule));
  }
  return "";
}

}  // namespace

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
