#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>

namespace simile::cli {

// The collection of a command may be named by this flag or by this argument.
inline constexpr const char* kCollectionFlag = "--collection";
inline constexpr const char* kCollectionArgument = "COLLECTION";

// A flag's or argument's part in the command line.
enum class Values : std::uint8_t {
  kNone,      // a switch: present or not
  kOne,       // one text, given once
  kRepeated,  // one text each time it is given
  kList,      // as above, and each text may hold several values, separated by commas
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
  // Keeps a text of the command line; "" for a switch. Returns what is wrong with it: empty for
  // nothing.
  std::function<std::string(const std::string& text)> store;
  // Of an argument without a flag: keeps what its text was probably meant as, because it follows
  // the value of a flag. Empty for arguments that have no use for it.
  std::function<void(const std::string& text, std::string meant)> store_meant = {};
  bool required = false;
  PathKind paths = PathKind::kNone;
  std::vector<std::string> choices;  // for completion; another text may be right too

  bool is_flag() const { return name.starts_with('-'); }
  bool takes_value() const { return values != Values::kNone; }
};

// A command with all that its parsing, help, completion and manual say of it.
struct CommandSpec {
  std::string name;
  std::string help;            // one line
  std::string footer;          // lines after the flags: examples first, then notes
  bool about_program = false;  // the program's help names it after the others, without its own
  std::deque<Argument> arguments;
  // kCollectionFlag or kCollectionArgument, once parsing found the collection there.
  std::string_view collection_given_as = kCollectionFlag;
  // `--title "Toy Story"`, where `--title Toy Story` makes Story the collection; empty where the
  // argument follows no value of a flag.
  std::string collection_meant;
  std::string collection_text;  // Story
  // What is wrong with the arguments together. Called after parsing, in their order.
  std::vector<std::function<absl::Status()>> checks;
  std::function<int()> run;  // returns the exit code
};

struct ProgramSpec {
  std::string name;         // "simile"
  std::string description;  // one line, to follow the name
  std::string version;      // "simile 0.1.0 (...)"
  std::deque<CommandSpec> commands;
};

// Every command has it. It is not among the arguments.
inline constexpr const char* kHelpFlag = "--help";

// The command of this name; nullptr for none.
const CommandSpec* FindCommand(const ProgramSpec& program, const std::string& name);
// The flag or positional argument of this name; nullptr for none.
const Argument* FindArgument(const CommandSpec& command, const std::string& name);

std::vector<std::string> CommandNames(const ProgramSpec& program);
// --help among them.
std::vector<std::string> ListFlagNames(const CommandSpec& command);

// How the help writes a flag with its value, or an argument: `--id ID,...`, `-k COUNT`, `FOLDER`.
std::string FlagText(const Argument& flag);
// The explanation with `(required)` where that is so.
std::string ArgumentHelp(const Argument& argument);

}  // namespace simile::cli
