#pragma once

#include <string>

#include "cli/answer.h"
#include "cli/terminal.h"

namespace simile::cli {

// The answer as a person reads it: for every query a heading and a ranked table, then the receipt.
// Columns: the fields asked for by name; else title, year and genres where the payload has a title;
// else the id and the first few fields by name.
std::string AnswerTable(const Answer& answer, const Terminal& terminal);

}  // namespace simile::cli
