#pragma once

#include <string>

#include "cli/terminal.h"
#include "simile/v1/admin.pb.h"

namespace simile::cli {

// What a server is and can do, one fact per line.
//   names_caller  whether the call said who made it, so that what is refused may be its role's
std::string InfoText(const v1::GetServerInfoResponse& info, const std::string& address,
                     bool names_caller, const Terminal& terminal);

// One bound per line, by name, with its unit: `reply_bytes_max  64.0 MiB`.
std::string LimitsTable(const v1::GetServerInfoResponse& info, const Terminal& terminal);

// {"version", "commit", "compiler", "build_type", "started_at", "backend", "changes_allowed",
//  "admin_allowed", "capabilities", "limits": {name: number}} on one line, ended by '\n'.
std::string InfoJson(const v1::GetServerInfoResponse& info);

}  // namespace simile::cli
