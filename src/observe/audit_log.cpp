#include "observe/audit_log.h"

namespace simile::observe {

AuditLog::AuditLog(const Logger& log, const Clock& clock)
    : log_(log),
      failures_(log, clock, "more changes were refused or failed, without an audit line each",
                /*always=*/true) {}

void AuditLog::Write(std::span<const LogField> fields) const noexcept {
  log_.WriteAlways("audit", fields);
}

}  // namespace simile::observe
