#pragma once

#include <string>

#include "cli/answer.h"
#include "cli/terminal.h"

namespace simile::cli {

// The answer for people: for every query a heading and a ranked table in the columns of
// ChooseItemColumns, or why it has no hits; then the receipt in a line, and whole with --receipt.
std::string AnswerTable(const Answer& answer, const QueryFlags& flags, const Terminal& terminal);

}  // namespace simile::cli
