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

// The answers of a running server to doctor's calls.
struct ServerAnswers {
  std::string address;
  v1::GetServerInfoResponse info;
  v1::ListCollectionsResponse collections;
  // Only from a server that runs with --allow-admin.
  std::optional<v1::DiagnoseResponse> diagnosis;
  std::optional<v1::GetStatsResponse> stats;
};

// Why the server's GPU does not answer, or does not answer everything. Reports the server's own
// probes, the collections and batches that the CPU answered, and the faults that the driver
// reported. Pure.
std::vector<doctor::Finding> DiagnoseServer(const ServerAnswers& answers);

// Each finding as ` FAIL  driver              kernel module 570.86.15, library ...`, with its fix
// in the lines below. Wraps at words on a terminal; writes one line per text to a file or a pipe.
std::string FindingsText(std::span<const doctor::Finding> findings, const Terminal& terminal);

// {"findings": [{"probe", "state", "text", "fix", "symptom"}], "outcome", "exit_code"}
std::string FindingsJson(std::span<const doctor::Finding> findings, doctor::Outcome outcome);

// 0: the GPU answers, or the CPU as configured. 1: the CPU answers. 2: nothing answers, or a GPU is
// demanded and cannot be used.
int ToExitCode(doctor::Outcome outcome);

}  // namespace simile::cli
