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

// One command of the program while its own file describes it: flags bound to variables, and what to
// run once they are filled. The variables must live until CommandLine::Run returns; commands keep
// them in a shared_ptr that their run function holds. Keeps the parser's large header out of the
// commands.
class Command {
 public:
  // names: "--id", or "-k,--count".
  // kind: what stands for a flag's value in the help: "ID".
  // Texts must be UTF-8, since the wire carries nothing else; names of files may be any bytes.
  Command& Switch(const std::string& names, bool& value, const std::string& help);
  Command& Text(const std::string& names, std::optional<std::string>& value,
                const std::string& kind, const std::string& help);
  Command& File(const std::string& names, std::optional<std::string>& value,
                const std::string& kind, const std::string& help);
  Command& Positional(const std::string& name, std::optional<std::string>& value,
                      const std::string& help);
  Command& Texts(const std::string& names, std::vector<std::string>& values,
                 const std::string& kind, const std::string& help);
  // Divided by commas as well as by spaces.
  Command& List(const std::string& names, std::vector<std::string>& values, const std::string& kind,
                const std::string& help);
  Command& Number(const std::string& names, std::optional<std::uint32_t>& value,
                  const std::string& kind, const std::string& help);
  Command& Real(const std::string& names, std::optional<double>& value, const std::string& kind,
                const std::string& help);

  // About the flag or argument described last.
  Command& Required();

  // What the help shows after the flags.
  Command& Footer(const std::string& text);
  // Returns the exit code.
  Command& Run(std::function<int()> run);

 private:
  friend class CommandLine;
  Command(CLI::App& app, std::function<int()>& run);

  CLI::App* app_;
  std::function<int()>* run_;
  CLI::Option* last_ = nullptr;
};

// The whole program as typed: its commands, its help, and the choice of one.
class CommandLine {
 public:
  CommandLine(const std::string& description, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command Add(const std::string& name, const std::string& help);

  // Parses and runs one command. Returns its exit code, or kWrongUsage after an error on standard
  // error that names the nearest known command.
  int Run(int argument_count, const char* const* arguments);

 private:
  struct Parser;
  const std::unique_ptr<Parser> parser_;
};

}  // namespace simile::cli
