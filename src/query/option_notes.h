#pragma once

#include <string>
#include <vector>

#include "query/query_request.h"
#include "simile/query.h"

namespace simile::query {

// Adds a sentence for each option of a query that can have no effect, whatever the collection's
// rows are. Pure.
//   cold  whether the query is answered by a cold start
void AddOptionNotes(const QueryRequest& request, Metric metric, bool cold,
                    std::vector<std::string>& notes);

}  // namespace simile::query
