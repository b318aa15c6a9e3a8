#pragma once

#include "cli/answer.h"
#include "cli/client_flags.h"

namespace simile::cli {

// Prints an answer as the flags ask: JSON for programs, tables for people. Returns kSucceeded.
int ShowAnswer(const Answer& answer, const QueryFlags& flags);

}  // namespace simile::cli
