#pragma once

#include <sys/types.h>

#include <string>

#include "files/scratch_folder.h"

namespace simile::cli {

// build/bin/simile serving the films on a free port, with changes allowed and examples/ as its data
// root. The destructor stops it with SIGTERM.
class LiveServer {
 public:
  LiveServer();
  ~LiveServer();
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  const std::string& address() const { return address_; }

 private:
  const ScratchFolder scratch_;
  pid_t process_ = -1;
  int output_ = -1;  // the reading end of its standard output
  std::string address_;
};

}  // namespace simile::cli
