#pragma once

#include "observe/log.h"

namespace simile::net {

// While it lives, sends what protobuf would print to standard error to our log as debug lines, so
// that a log of JSON lines has only JSON lines. The library has one log function for the process,
// so only the server program constructs this; tests do not.
class LibraryLogs {
 public:
  explicit LibraryLogs(const observe::Logger& log);  // borrowed
  ~LibraryLogs();
  LibraryLogs(const LibraryLogs&) = delete;
  LibraryLogs& operator=(const LibraryLogs&) = delete;
};

}  // namespace simile::net
