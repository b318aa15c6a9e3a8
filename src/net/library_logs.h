#pragma once

#include "observe/log.h"

namespace simile::net {

// While it lives, sends what gRPC and protobuf would print to standard error to our log, so that a
// log of JSON lines has only JSON lines; of gRPC's errors ten a second, the others as debug lines.
// The libraries have one log function for the process, so only the server program constructs this;
// tests do not.
class LibraryLogs {
 public:
  explicit LibraryLogs(const observe::Logger& log);  // borrowed
  ~LibraryLogs();
  LibraryLogs(const LibraryLogs&) = delete;
  LibraryLogs& operator=(const LibraryLogs&) = delete;
};

}  // namespace simile::net
