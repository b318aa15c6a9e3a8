#pragma once

#include <chrono>
#include <vector>

#include <absl/status/statusor.h>

#include "doctor/examination.h"
#include "doctor/symptoms.h"

namespace simile::cli {

// Runs doctor::ExamineGpu in a child process, and returns its findings within the limit whatever
// the driver does: a probe that hangs or ends its process is a finding. A process and not a thread,
// because a call that hangs inside the kernel would keep this process from ending, and its caller
// from getting an exit code. A child that cannot be killed is left behind.
// REQUIRES: this process has one thread.
// Errors: kUnavailable when no process can be started.
absl::StatusOr<std::vector<doctor::Finding>> ExamineInChild(const doctor::Options& options,
                                                            std::chrono::seconds limit);

}  // namespace simile::cli
