#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"

namespace simile::integration {

// A command of the real program that lasts, in a process of its own: `simile serve` unless
// Circumstances name another, `simile bench`. Killed and reaped by the destructor.
class ServerProcess {
 public:
  enum class Output : std::uint8_t { kRead, kFullDevice, kBrokenPipe };
  struct Circumstances {
    std::vector<int> closed_streams = {};  // of 0, 1 and 2
    Output standard_output = Output::kRead;
    std::optional<std::uint64_t> descriptors = {};  // RLIMIT_NOFILE, soft and hard
    std::string program = SIMILE_PROGRAM;
    std::string command = "serve";
    // NAME=VALUE. They override the variables of this process that any program needs or that tests
    // set. By default the CPU is used, even where there is a GPU.
    std::vector<std::string> variables = {"SIMILE_BACKEND_PREFERENCE=cpu"};
  };

  // Runs `simile COMMAND ARGUMENTS`, without Circumstances `simile serve ARGUMENTS`.
  explicit ServerProcess(const std::vector<std::string>& arguments)
      : ServerProcess(arguments, Circumstances()) {}
  ServerProcess(const std::vector<std::string>& arguments, const Circumstances& circumstances);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // Reads output until it has the address that the program listens on, and returns that; empty when
  // the program ended first.
  std::string AwaitListening();
  // The port of the metrics, which is printed in one write with that address.
  // REQUIRES: AwaitListening returned an address.
  std::uint16_t MetricsPort() const;
  // Reads until the text has been printed; false when the program ended first.
  bool AwaitOutput(const std::string& text);
  // Reads more output, for which it waits no longer than this. False when there was none.
  bool AwaitMore(std::chrono::milliseconds wait);
  const std::string& output() const { return output_; }  // standard output and error so far

  pid_t pid() const { return pid_; }
  void Signal(int signal) const;
  bool HasEnded();
  // Reads output to its end and returns the exit status, or 128 + the signal that ended the
  // program.
  int AwaitExit();

 private:
  bool ReadMore();
  bool Reap(int options);  // as waitpid takes them

  pid_t pid_ = -1;
  base::FileDescriptor from_;  // its standard output and error
  std::string output_;
  std::optional<int> exit_;
};

// The port: the number at the end of an address, or of a text that ends with an address.
std::uint16_t ParsePort(const std::string& address);

}  // namespace simile::integration
