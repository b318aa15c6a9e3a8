#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/file_descriptor.h"

namespace simile::integration {

// The real program in a process of its own. Killed and reaped when destroyed.
class ServerProcess {
 public:
  struct Circumstances {
    std::optional<std::uint64_t> descriptors;  // RLIMIT_NOFILE, soft and hard
    std::string program = SIMILE_PROGRAM;
    // NAME=VALUE, before those of this process. On the CPU, whatever the machine has, unless a test
    // says otherwise.
    std::vector<std::string> variables = {"SIMILE_BACKEND_PREFERENCE=cpu"};
  };

  // Runs `simile serve ARGUMENTS`.
  explicit ServerProcess(const std::vector<std::string>& arguments)
      : ServerProcess(arguments, Circumstances()) {}
  ServerProcess(const std::vector<std::string>& arguments, const Circumstances& circumstances);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // Reads what it prints until it says where it listens: that address; empty when it ended first.
  std::string AwaitListening();
  // Reads until the text has been printed; false when the program ended first.
  bool AwaitOutput(const std::string& text);
  const std::string& output() const { return output_; }  // standard output and error so far

  void Signal(int signal) const;
  // Waits for the end: the exit status, or 128 + the signal that ended it. Reads output to its end.
  int AwaitExit();

 private:
  bool ReadMore();

  pid_t pid_ = -1;
  data::FileDescriptor from_;  // its standard output and error
  std::string output_;
  std::optional<int> exit_;
};

}  // namespace simile::integration
