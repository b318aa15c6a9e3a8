#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <absl/status/status.h>

#include "observe/audit_log.h"
#include "service/calls/call.h"

namespace simile::service {

// The line in the log that says who changed a collection, or tried to, and how that ended. Each
// call gets a line, also where several calls share a change. Of calls that fail with the same
// reason, only the first few in a second get one (AuditLog).
class ChangeAudit {
 public:
  //   log  borrowed
  ChangeAudit(observe::AuditLog& log, AnyCall& call, std::string_view collection);

  // Whether the line has the error's text. It has the text when the reply to the call leaves it
  // out.
  enum class Text : std::uint8_t { kLeftOut, kWritten };
  // Writes the line. No line is written when memory has run out.
  void Ended(const absl::Status& status, Text text = Text::kLeftOut) const noexcept;

 private:
  observe::AuditLog& log_;
  const std::string method_;
  const std::string principal_;
  const std::string peer_;
  const std::string request_id_;
  const std::string collection_;
};

// Writes the line of a call that was refused before its request was read.
void AuditRefusal(observe::AuditLog& log, AnyCall& call, const absl::Status& status) noexcept;

}  // namespace simile::service
