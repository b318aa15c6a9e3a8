#pragma once

#include <span>

#include "base/error_detail.h"
#include "observe/failure_lines.h"
#include "observe/log.h"
#include "simile/clock.h"

namespace simile::observe {

// The lines "audit" of the log: who changed what, or tried to. The log's level never drops these
// lines. Owned by wiring; safe to use from any thread.
class AuditLog {
 public:
  // Both borrowed.
  AuditLog(const Logger& log, const Clock& clock)
      : log_(log),
        failures_(log, clock, "more changes were refused or failed, without an audit line each",
                  /*always=*/true) {}

  void Write(std::span<const LogField> fields) const noexcept { log_.WriteAlways("audit", fields); }
  void Write(Logger::Fields fields) const noexcept { Write({fields.begin(), fields.size()}); }
  // Whether a change that was refused or failed gets a line. Anyone can try any number of times,
  // and the lines of changes that were made must not be lost among these failures.
  bool AdmitsFailure(base::ErrorReason reason) { return failures_.Admits(reason); }
  // Logs how many failures got no line. To be called once a second and before the end.
  void ReportLeftOut() { failures_.ReportLeftOut(); }

 private:
  const Logger& log_;
  FailureLines failures_;
};

}  // namespace simile::observe
