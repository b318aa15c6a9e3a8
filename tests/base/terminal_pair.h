#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

#include "base/file_descriptor.h"

namespace simile::base {

// Both sides of a new terminal: what a person sees and types, and what a program writes and reads.
// A machine without /dev/pts, such as some containers, has no terminal: tests that need one are
// skipped.
class TerminalPair {
 public:
  static constexpr char kMissing[] = "this machine has no terminals: /dev/pts is missing";

  TerminalPair() : person_(posix_openpt(O_RDWR | O_NOCTTY)) {
    if (!person_.valid() || grantpt(person_.get()) != 0 || unlockpt(person_.get()) != 0) return;
    const char* const name = ptsname(person_.get());
    if (name == nullptr) return;
    name_ = name;
    program_ = FileDescriptor(open(name, O_RDWR | O_NOCTTY));
  }

  bool exists() const { return program_.valid(); }
  const std::string& name() const { return name_; }  // of the program's side
  int person() const { return person_.get(); }
  int program() const { return program_.get(); }
  void Close() {
    person_ = {};
    program_ = {};
  }

 private:
  FileDescriptor person_;
  std::string name_;
  FileDescriptor program_;
};

}  // namespace simile::base
