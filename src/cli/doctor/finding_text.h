#pragma once

#include <span>
#include <string>

#include "cli/terminal.h"
#include "doctor/examination.h"
#include "doctor/symptoms.h"

namespace simile::cli {

// ` FAIL  driver              kernel module 570.86.15, library ...`, and its fix in lines below. A
// terminal gets whole words a line; a file or a pipe one line for each.
std::string FindingsText(std::span<const doctor::Finding> findings, const Terminal& terminal);

// {"findings": [{"probe", "state", "text", "fix", "symptom"}], "outcome", "exit_code"}
std::string FindingsJson(std::span<const doctor::Finding> findings, doctor::Outcome outcome);

// 0 the GPU answers, 1 the CPU does, 2 nothing does, or a GPU is demanded and cannot be used.
int ExitCodeOf(doctor::Outcome outcome);

}  // namespace simile::cli
