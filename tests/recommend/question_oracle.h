#pragma once

#include <string>
#include <vector>

#include "engine/executor.h"
#include "recommend/query_request.h"

namespace simile::recommend {

// As engine::QuestionAnswer, with keywords of its own.
struct ExpectedAnswer {
  struct Group {
    std::string keyword;
    std::vector<Hit> hits;
  };
  std::vector<Hit> hits;
  std::vector<Group> groups;
};

// What a request is answered with by the definitions of docs/design/recommendation.md: every row
// that passes is scored by the canonical reference, sorted, grouped or chosen from, one row at a
// time.
//   vectors  [the request's vectors, dim]  as it was resolved to
//   hits and groups from the best on, offset not yet skipped
ExpectedAnswer BruteForce(const data::Dataset& dataset, const QueryRequest& request,
                          MatrixView vectors);

}  // namespace simile::recommend
