#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/file_descriptor.h"

namespace simile::cli::top {

// build/bin/simile on a terminal of its own, ended by the destructor.
class TerminalProgram {
 public:
  TerminalProgram(const std::vector<std::string>& arguments, unsigned short columns,
                  unsigned short lines);
  ~TerminalProgram();
  TerminalProgram(const TerminalProgram&) = delete;
  TerminalProgram& operator=(const TerminalProgram&) = delete;

  // Reads what it writes until that holds this text; false when the program ended first.
  bool AwaitOutput(const std::string& text);
  // What was read since the last call.
  std::string TakeOutput();
  void Type(const std::string& keys) const;
  void Resize(unsigned short columns, unsigned short lines) const;
  void Signal(int signal) const;
  // Waits until the program is stopped by a signal, as Ctrl-Z does.
  void AwaitStopped() const;
  // Whether the terminal shows what is typed and waits for whole lines, as a shell wants it.
  bool HasUsualMode() const;
  // Reads to the end and returns the exit status, or 128 + the signal that ended the program.
  int AwaitExit();

 private:
  bool ReadMore();

  pid_t pid_ = -1;
  base::FileDescriptor terminal_;  // its other side
  std::string output_;
};

}  // namespace simile::cli::top
