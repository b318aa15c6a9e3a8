#pragma once

#include "observe/log.h"

namespace simile::service {

// Sends what gRPC and protobuf would print to standard error through our log while it lives, so
// that a log of JSON lines holds nothing else. Those libraries have one log function a process: so
// only the server program makes one of these, tests do not.
class LibraryLogs {
 public:
  explicit LibraryLogs(const observe::Logger& log);  // borrowed
  ~LibraryLogs();
  LibraryLogs(const LibraryLogs&) = delete;
  LibraryLogs& operator=(const LibraryLogs&) = delete;
};

}  // namespace simile::service
