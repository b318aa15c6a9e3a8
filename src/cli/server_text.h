#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/terminal.h"
#include "simile/v1/admin.pb.h"
#include "simile/v1/collections.pb.h"
#include "simile/v1/types.pb.h"

namespace simile::cli {

// `cpu: no NVIDIA driver on this machine`; `gpu` if no reason is given.
std::string BackendText(const v1::BackendStatus& backend);

// The backend and engines that computed an answer: `cpu: scan-avx2 + gather-avx2`
std::string BackendText(const v1::Receipt& receipt);

// `int8-amx on AMD EPYC 9B14, 2 threads`
std::string EngineText(const v1::BackendStatus& backend);

// One line per use of GPU memory, with its bytes now and at peak; empty without a GPU.
std::string DeviceMemoryTable(const v1::BackendStatus& backend, const Terminal& terminal);

// {"kind", "device", "engine", "reason"}
nlohmann::ordered_json BackendJson(const v1::BackendStatus& backend);

// [{"kind", "bytes", "peak_bytes"}]
nlohmann::ordered_json DeviceMemoryJson(const v1::BackendStatus& backend);

// Version, backend, settings and capabilities of a server, one fact per line.
//   names_caller  whether the call was made with credentials; a refusal may then depend on the
//                 caller's role
std::string InfoText(const v1::GetServerInfoResponse& info, const std::string& address,
                     bool names_caller, const Terminal& terminal);

// One limit per line, sorted by name, with its unit: `reply_bytes_max  64.0 MiB`.
std::string LimitsTable(const v1::GetServerInfoResponse& info, const Terminal& terminal);

// {"version", "commit", "compiler", "build_type", "started_at", "backend", "changes_allowed",
//  "admin_allowed", "capabilities", "limits": {name: number}} on one line, ended by '\n'.
std::string InfoJson(const v1::GetServerInfoResponse& info);

}  // namespace simile::cli
