#pragma once

#include <string>

#include "cli/terminal.h"
#include "simile/v1/search.pb.h"

namespace simile::cli {

// An Explain and its answer, as `explain` prints them.
struct ExplainedAnswer {
  std::string collection;
  std::string heading;         // "in films, like heat-1995"
  std::string backend_reason;  // why the collection has its backend
  v1::ExplainResponse response;
};

// One row for each item: its rank and score among all rows, and why it is a hit or is none.
std::string ExplanationTable(const ExplainedAnswer& answer, bool whole_receipt,
                             const Terminal& terminal);

// The response in one line, its fields under their names in simile.v1.ExplainResponse.
std::string ExplanationJson(const ExplainedAnswer& answer);

}  // namespace simile::cli
