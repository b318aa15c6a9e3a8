#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): another library's name
class App;
class Option;
}  // namespace CLI

namespace simile::cli {

// Describes one command: its flags, each bound to a variable, and the function to run after
// parsing. The variables must live until CommandLine::Run returns; commands keep them in a
// shared_ptr that their function holds. Keeps CLI11's large header out of the commands.
class Command {
 public:
  // names: "--id", or "-k,--count".
  // kind: the name of a flag's value in the help: "ID".
  // Texts must be UTF-8, as protobuf strings are; file names may be any bytes.
  Command& Switch(const std::string& names, bool& value, const std::string& help);
  Command& Text(const std::string& names, std::optional<std::string>& value,
                const std::string& kind, const std::string& help);
  Command& File(const std::string& names, std::optional<std::string>& value,
                const std::string& kind, const std::string& help);
  Command& Positional(const std::string& name, std::optional<std::string>& value,
                      const std::string& help);
  Command& Texts(const std::string& names, std::vector<std::string>& values,
                 const std::string& kind, const std::string& help);
  // Values separated by commas or spaces.
  Command& List(const std::string& names, std::vector<std::string>& values, const std::string& kind,
                const std::string& help);
  Command& Number(const std::string& names, std::optional<std::uint32_t>& value,
                  const std::string& kind, const std::string& help);
  Command& Real(const std::string& names, std::optional<double>& value, const std::string& kind,
                const std::string& help);

  // Makes the flag or argument added last mandatory.
  Command& Required();

  // Refuses a flag's former name with a message that names the present one.
  Command& Renamed(const std::string& former, const std::string& present);

  // Text printed after the flags in the help.
  Command& Footer(const std::string& text);
  // The function to run; it returns the exit code.
  Command& Run(std::function<int()> run);

 private:
  friend class CommandLine;
  Command(CLI::App& app, std::function<int()>& run);

  CLI::App* app_;
  std::function<int()>* run_;
  CLI::Option* last_ = nullptr;
};

// Parses the program's arguments and runs one of its commands.
class CommandLine {
 public:
  CommandLine(const std::string& description, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command Add(const std::string& name, const std::string& help);

  // Returns the command's exit code, or kWrongUsage after printing an error. The error for an
  // unknown command names the nearest known one.
  int Run(int argument_count, const char* const* arguments);

 private:
  struct Parser;
  const std::unique_ptr<Parser> parser_;
};

}  // namespace simile::cli
