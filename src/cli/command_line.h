#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_tree.h"

namespace simile::cli {

// Builds one command: its flags and arguments, each bound to a variable, and the function to run
// after parsing. The variables must live until CommandLine::Run returns. Commands keep them in a
// shared_ptr that the function holds.
class Command {
 public:
  // name: "--id" or "-k" for a flag; without a dash for a positional argument.
  // kind: the name of a flag's value in the help, such as "ID".
  // Texts must be UTF-8, as protobuf strings are; file names may be any bytes. Refuses an empty
  // text, which is most often an unset shell variable.
  Command& Switch(const std::string& name, bool& value, const std::string& help);
  Command& Text(const std::string& name, std::optional<std::string>& value, const std::string& kind,
                const std::string& help);
  Command& File(const std::string& name, std::optional<std::string>& value, const std::string& kind,
                const std::string& help);
  Command& Positional(const std::string& name, std::optional<std::string>& value,
                      const std::string& help);
  // May be repeated. Each text is one value, commas included.
  Command& Texts(const std::string& name, std::vector<std::string>& values, const std::string& kind,
                 const std::string& help);
  // May be repeated. Each text is split by SplitList.
  Command& List(const std::string& name, std::vector<std::string>& values, const std::string& kind,
                const std::string& help);
  // A single value, written as in a list: `\,` is a comma.
  Command& ListValue(const std::string& name, std::optional<std::string>& value,
                     const std::string& kind, const std::string& help);
  //   min  smaller numbers are refused, whatever the server's limits are
  Command& Number(const std::string& name, std::optional<std::uint32_t>& value,
                  const std::string& kind, const std::string& help, std::uint32_t min = 0);
  Command& Real(const std::string& name, std::optional<double>& value, const std::string& kind,
                const std::string& help);

  // The collection, as the first argument or as the flag --collection; refuses two different names.
  // If the line has only as many arguments as the command requires besides the collection, the
  // collection is the argument left out.
  Command& Collection(std::optional<std::string>& name, const std::string& help);

  // Makes the flag or argument that was added last mandatory.
  Command& Required();

  // Sets what completion offers for the flag or argument that was added last.
  Command& Choices(std::vector<std::string> choices);
  Command& Paths(PathKind paths);

  // Adds a check of all flags together, made after parsing. An error that it returns is wrong
  // usage.
  Command& Check(std::function<absl::Status()> check);

  // Marks a command that describes the program itself; see CommandSpec::about_program.
  Command& AboutProgram();

  // Sets the text that the help prints after the flags: examples first.
  Command& Footer(const std::string& text);
  // Sets the function to run, which returns the exit code.
  Command& Run(std::function<int()> run);

  const CommandSpec& spec() const { return *spec_; }

 private:
  friend class CommandLine;
  explicit Command(CommandSpec& spec) : spec_(&spec) {}

  using Store = std::function<std::string(const std::string& text)>;  // as Argument::store
  Argument& Add(const std::string& name, const std::string& kind, const std::string& help,
                Values values, Store store);

  CommandSpec* spec_;
  Argument* last_ = nullptr;  // the flag or argument that was added last
};

// Splits a list flag's text at its commas. `\,` is a comma inside a value; any other backslash is
// an ordinary character. A value that ends in a backslash must be the last in its text.
std::vector<std::string> SplitList(const std::string& text);
// A list flag with one value, quoted for a shell: `--id heat-1995`, `--id 'a\,b'`, `--id=-k`.
std::string ListFlag(const std::string& name, const std::string& value);

// Parses the program's arguments and runs one of its commands.
class CommandLine {
 public:
  CommandLine(const std::string& description, const std::string& version);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command Add(const std::string& name, const std::string& help);

  const ProgramSpec& program() const { return program_; }

  // Returns the command's exit code, or kWrongUsage after printing an error. Prints the error also
  // as JSON if --json is anywhere among the arguments.
  int Run(int argument_count, const char* const* arguments);

 private:
  ProgramSpec program_;
};

}  // namespace simile::cli
