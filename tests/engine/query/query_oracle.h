#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/load/dataset.h"
#include "engine/query/query_request.h"
#include "engine/search/resolved_query.h"

namespace simile::engine {

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

// The rank of a row among all rows that may be returned, by the same definitions.
struct ExpectedPlace {
  struct Group {
    std::string keyword;
    std::uint64_t group_rank = 0;
    std::uint64_t rank_in_group = 0;
  };
  float score = 0;
  std::uint64_t rank = 0;
  std::vector<Group> groups;          // in the order of their keywords
  std::optional<std::uint32_t> step;  // of diversity, that chose it
};
ExpectedPlace BruteForcePlace(const data::Dataset& dataset, const QueryRequest& request,
                              MatrixView vectors, const std::function<bool(Row)>& passes, Row row);

}  // namespace simile::engine
