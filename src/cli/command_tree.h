#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>

namespace simile::cli {

// A command's collection is given by this flag or by this argument.
inline constexpr const char* kCollectionFlag = "--collection";
inline constexpr const char* kCollectionArgument = "COLLECTION";

// How many values a flag or argument takes.
enum class Values : std::uint8_t {
  kNone,      // a switch: present or not
  kOne,       // one text, given once
  kRepeated,  // may be repeated; each time one text
  kList,      // may be repeated; each text holds values separated by commas
};

// The paths that completion offers for a value.
enum class PathKind : std::uint8_t {
  kNone,
  kFile,
  kFolder,
  kNamedFolder,  // the folder of NAME=FOLDER
};

// A flag ("--id", "-k") or a positional argument ("FOLDER") of a command.
struct Argument {
  std::string name;
  std::string kind;  // the name of a flag's value in the help: "ID"
  std::string help;
  Values values = Values::kOne;
  // Stores a text of the command line; "" for a switch. Returns what is wrong with the text, or an
  // empty string.
  std::function<std::string(const std::string& text)> store;
  // For a positional argument that follows a flag's value: stores what its text was probably meant
  // as. Empty for arguments that do not need it.
  std::function<void(const std::string& text, std::string meant)> store_meant = {};
  bool required = false;
  PathKind paths = PathKind::kNone;
  std::vector<std::string> choices;  // offered by completion; other texts may be valid too

  bool is_flag() const { return name.starts_with('-'); }
  bool takes_value() const { return values != Values::kNone; }
};

// A command: everything that parsing, help, completion and the manual need.
struct CommandSpec {
  std::string name;
  std::string help;            // one line
  std::string footer;          // lines after the flags: examples first, then notes
  bool about_program = false;  // the program's help names it in a last line, without its help text
  std::deque<Argument> arguments;
  // Where parsing found the collection: kCollectionFlag or kCollectionArgument.
  std::string_view collection_given_as = kCollectionFlag;
  // What was probably meant: `--title "Toy Story"` for the line `--title Toy Story`, which makes
  // Story the collection. Empty if the collection does not follow a flag's value.
  std::string collection_meant;
  std::string collection_text;  // in this example: Story
  // Checks of all arguments together, called in this order after parsing.
  std::vector<std::function<absl::Status()>> checks;
  std::function<int()> run;  // returns the exit code
};

struct ProgramSpec {
  std::string name;         // "simile"
  std::string description;  // one line, printed after the name
  std::string version;      // "simile 0.1.0 (...)"
  std::deque<CommandSpec> commands;
};

// The flag that every command has. It is not among CommandSpec::arguments.
inline constexpr const char* kHelpFlag = "--help";

// The command of this name; nullptr if there is none.
const CommandSpec* FindCommand(const ProgramSpec& program, const std::string& name);
// The flag or positional argument of this name; nullptr if there is none.
const Argument* FindArgument(const CommandSpec& command, const std::string& name);

std::vector<std::string> CommandNames(const ProgramSpec& program);
// The command's flags, --help included.
std::vector<std::string> ListFlagNames(const CommandSpec& command);

// The name column of the help: `--id ID,...`, `-k COUNT`, `FOLDER`.
std::string FlagText(const Argument& flag);
// The help text, with `(required)` for a required argument.
std::string ArgumentHelp(const Argument& argument);

}  // namespace simile::cli
