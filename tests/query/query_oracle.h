#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "engine/search/resolved_query.h"
#include "query/query_request.h"

namespace simile::query {

// As engine::QueryResult, with keywords of its own.
struct ExpectedAnswer {
  struct Group {
    std::string keyword;
    std::vector<Hit> hits;
  };
  std::vector<Hit> hits;
  std::vector<Group> groups;
};

// The answer to a request by the definitions of docs/design/recommendation.md: scores every row
// that passes with the canonical reference, then sorts, groups or diversifies, one row at a time.
// The first `offset` hits or groups are included.
//   vectors  [vectors of the resolved request, dim]
//   passes   whether the filters let a row pass
ExpectedAnswer BruteForce(const data::Dataset& dataset, const QueryRequest& request,
                          MatrixView vectors, const std::function<bool(Row)>& passes);

}  // namespace simile::query
