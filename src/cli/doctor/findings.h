#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "doctor/examination.h"
#include "doctor/symptoms.h"
#include "simile/v1/admin.pb.h"
#include "simile/v1/collections.pb.h"

namespace simile::cli {

// What a running server says of itself.
struct ServerAnswers {
  std::string address;
  v1::GetServerInfoResponse info;
  v1::ListCollectionsResponse collections;
  // Only of a server that runs with --allow-admin.
  std::optional<v1::DiagnoseResponse> diagnosis;
  std::optional<v1::GetStatsResponse> stats;
};

// Why its GPU does not answer, or not everything: what the server's own probes found, the
// collections and batches that went to the CPU, and the faults that the driver reported. Pure.
std::vector<doctor::Finding> DiagnoseServer(const ServerAnswers& answers);

// ` FAIL  driver              kernel module 570.86.15, library ...`, and its fix in lines below. A
// terminal gets whole words a line; a file or a pipe one line for each.
std::string FindingsText(std::span<const doctor::Finding> findings, const Terminal& terminal);

// {"findings": [{"probe", "state", "text", "fix", "symptom"}], "outcome", "exit_code"}
std::string FindingsJson(std::span<const doctor::Finding> findings, doctor::Outcome outcome);

// 0 the GPU answers, 1 the CPU does, 2 nothing does, or a GPU is demanded and cannot be used.
int ToExitCode(doctor::Outcome outcome);

}  // namespace simile::cli
