#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/verify/oracle.h"
#include "simile/matrix_view.h"

// Pure comparisons of answers with the files. Each returns one sentence about the first mistake, or
// nothing.
namespace simile::cli {

struct ReturnedHit {
  std::uint32_t rank = 0;
  Row row = 0;
  float score = 0;
};

struct ReturnedGroup {
  std::uint32_t rank = 0;
  std::string keyword;
  std::vector<ReturnedHit> hits;
};

// The rows that a query may return, their scores, and how many.
struct Expectation {
  std::vector<ScoreRange> scores = {};  // [row_count]
  std::vector<bool> allowed = {};  // [row_count] rows that pass the filter and are not excluded
  std::size_t k = 0;
  std::size_t offset = 0;
  std::optional<double> score_threshold = {};
};

// Checks a ranking by score, equal scores by row. Every better row must be returned, or skipped by
// the offset.
std::optional<std::string> CheckHits(const Expectation& expected,
                                     std::span<const ReturnedHit> hits);

// A keyword and the rows that hold it, allowed or not.
struct KeywordRows {
  std::string keyword;
  std::vector<Row> rows;
};
std::optional<std::string> CheckGroups(const Expectation& expected, std::size_t group_size,
                                       std::span<const KeywordRows> keywords,
                                       std::span<const ReturnedGroup> groups);

// The parameters of maximal marginal relevance, as Diversity in search.proto defines it.
struct DiversityRule {
  double lambda = 0.5;
  std::size_t candidates = 100;
};
std::optional<std::string> CheckDiverse(const Expectation& expected, const DiversityRule& rule,
                                        const Oracle& oracle, std::span<const ReturnedHit> hits);

// Checks that the hits are these rows in this order, with score 0.
std::optional<std::string> CheckOrder(std::span<const Row> expected,
                                      std::span<const ReturnedHit> hits);

}  // namespace simile::cli
