#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/verify/check_answer.h"
#include "cli/verify/oracle.h"
#include "simile/v1/collections.pb.h"
#include "simile/v1/search.pb.h"

namespace simile::cli {

// A query to send to a server, and the check of its answer.
struct Sample {
  std::string label;          // "item toy-story-1995, k 10", for messages
  v1::SearchRequest request;  // has one query
  bool recommend = false;     // call Recommend instead of Search; the query is by user_id
  std::uint32_t pages = 1;  // pages to ask for, one after another; hits of all are checked together
  v1::ScoreKind score_kind = v1::SCORE_KIND_UNSPECIFIED;
  std::optional<std::uint64_t> rows_passing;  // rows that pass the filter
  std::function<std::optional<std::string>(const v1::SearchResult& result)> check;
};

// A kind of query. The table of SampleKinds defines what `verify` covers.
struct SampleKind {
  const char* name;
  // Draws one query; nothing if the collection lacks the data for this kind.
  std::optional<Sample> (*draw)(class SampleDraw& draw);
};
std::vector<SampleKind> SampleKinds();

// The source of random samples. Borrows its arguments.
class SampleDraw {
 public:
  //   served  the collection as the server describes it, with names and types of fields
  SampleDraw(const Oracle& oracle, const v1::Collection& served, std::uint64_t seed)
      : oracle_(oracle), served_(served), state_(seed) {}

  const Oracle& oracle() const { return oracle_; }
  const data::Dataset& dataset() const { return oracle_.dataset(); }
  const v1::Collection& served() const { return served_; }

  std::size_t Below(std::size_t bound);
  // 0..1
  double Fraction();
  // A random row that a search may return.
  Row AnyRow();
  std::optional<Row> AnyUser();
  // The sum of a few random rows, with noise.
  std::vector<float> AnyVector();

 private:
  const Oracle& oracle_;
  const v1::Collection& served_;
  std::uint64_t state_;
};

}  // namespace simile::cli
