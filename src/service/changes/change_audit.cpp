#include "service/changes/change_audit.h"

#include <vector>

#include "base/error_detail.h"
#include "service/calls/call.h"

namespace simile::service {

ChangeAudit::ChangeAudit(observe::AuditLog& log, AnyCall& call, std::string_view collection)
    : log_(log),
      method_(call.method()),
      principal_(call.access().principal() ? call.access().principal()->name : ""),
      peer_(call.peer()),
      request_id_(call.request_id()),
      collection_(collection) {}

void ChangeAudit::Ended(const absl::Status& status, Text text) const noexcept {
  static_cast<void>(Guarded([&] {
    if (!status.ok() && !log_.AdmitsFailure(base::ReasonOf(status))) return;
    const std::string_view result =
        status.ok() ? "done" : base::InfoOf(base::ReasonOf(status)).name;
    const std::string_view principal = principal_.empty() ? "anyone" : std::string_view(principal_);
    std::vector<observe::LogField> fields = {{"rpc", method_},
                                             {"principal", principal},
                                             {"peer", peer_},
                                             {"request_id", request_id_},
                                             {"result", result}};
    if (!collection_.empty()) fields.emplace_back("collection", collection_);
    const std::string error(status.message());
    if (text == Text::kWritten) fields.emplace_back("error", error);
    log_.Write(fields);
  }));
}

void AuditRefusal(observe::AuditLog& log, AnyCall& call, const absl::Status& status) noexcept {
  static_cast<void>(Guarded([&] { ChangeAudit(log, call, "").Ended(status); }));
}

}  // namespace simile::service
