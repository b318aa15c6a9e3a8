#include "net/library_logs.h"

#include <atomic>
#include <string>

#include <google/protobuf/stubs/logging.h>

namespace simile::net {
namespace {

// The library passes no context to its callback, so it is global; null when there is no server.
std::atomic<const observe::Logger*> current_log = nullptr;

// protobuf only logs messages that it cannot parse. Those are a caller's error, and the call fails.
void LogProtobuf(google::protobuf::LogLevel /*level*/, const char* /*file*/, int /*line*/,
                 const std::string& message) {
  const observe::Logger* const log = current_log.load();
  if (log != nullptr) log->Debug("protobuf", {{"text", message}});
}

}  // namespace

LibraryLogs::LibraryLogs(const observe::Logger& log) {
  current_log = &log;
  google::protobuf::SetLogHandler(&LogProtobuf);
}

// The function stays installed, since other threads may be in it, but logs nothing.
LibraryLogs::~LibraryLogs() { current_log = nullptr; }

}  // namespace simile::net
