#include "net/library_logs.h"

#include <atomic>
#include <mutex>
#include <string>

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include "net/token_bucket.h"
#include "simile/clock.h"

namespace simile::net {
namespace {

// The libraries pass no context to their callbacks, so it is global; null when there is no server.
std::atomic<const observe::Logger*> current_log = nullptr;

// Whether another error may be logged: clients decide how many there are.
bool AdmitsError() {
  constexpr Pace kErrors{10, 10};
  static const RealClock clock;
  static std::mutex mutex;  // guards errors
  static TokenBucket errors(kErrors, clock.Now());
  const std::lock_guard lock(mutex);
  return errors.Spend(clock);
}

void LogGrpc(gpr_log_func_args* args) {
  const observe::Logger* const log = current_log.load();
  if (log == nullptr) return;
  if (args->severity == GPR_LOG_SEVERITY_ERROR && AdmitsError()) {
    log->Warn("grpc", {{"text", args->message}});
  } else {
    log->Debug("grpc", {{"text", args->message}});
  }
}

// protobuf only logs messages that it cannot parse. Those are a caller's error, and the call fails.
void LogProtobuf(google::protobuf::LogLevel /*level*/, const char* /*file*/, int /*line*/,
                 const std::string& message) {
  const observe::Logger* const log = current_log.load();
  if (log != nullptr) log->Debug("protobuf", {{"text", message}});
}

}  // namespace

LibraryLogs::LibraryLogs(const observe::Logger& log) {
  current_log = &log;
  gpr_set_log_function(&LogGrpc);
  google::protobuf::SetLogHandler(&LogProtobuf);
}

// The functions stay installed, since the libraries' threads may be in them, but log nothing.
LibraryLogs::~LibraryLogs() { current_log = nullptr; }

}  // namespace simile::net
