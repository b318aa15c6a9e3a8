#pragma once

#include <string>

#include "cli/answer.h"
#include "cli/terminal.h"

namespace simile::cli {

// The answer for people: for every query a heading and a ranked table, then the receipt.
// Columns: the fields of --fields; else title, year and genres if the payload has a title; else the
// id and the first three fields by name. Rows where the answer has them.
std::string AnswerTable(const Answer& answer, const Terminal& terminal);

}  // namespace simile::cli
