#include "cli/verify/check_answer.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string RangeText(const ScoreRange& range) {
  return fmt::format("{:.8g} to {:.8g}", range.low, range.high);
}

// Checks that every hit may be returned, has its row's score, and comes in the order of ranks.
//   in_order  whether hits must come by descending score, then by row
std::optional<std::string> CheckEach(const Expectation& expected, std::span<const ReturnedHit> hits,
                                     std::size_t offset, bool in_order) {
  std::vector<bool> seen(expected.scores.size());
  for (std::size_t i = 0; i < hits.size(); ++i) {
    const ReturnedHit& hit = hits[i];
    if (hit.rank != offset + i + 1) {
      return fmt::format("hit {} has rank {} instead of {}", i, hit.rank, offset + i + 1);
    }
    if (!expected.allowed[hit.row]) {
      return fmt::format("row {} at rank {} is excluded or does not pass the filter", hit.row,
                         hit.rank);
    }
    if (seen[hit.row]) return fmt::format("row {} is returned twice", hit.row);
    seen[hit.row] = true;
    const ScoreRange& range = expected.scores[hit.row];
    if (!(hit.score >= range.low && hit.score <= range.high)) {
      return fmt::format("row {} at rank {} has score {:.8g}; its vector scores {}", hit.row,
                         hit.rank, hit.score, RangeText(range));
    }
    if (expected.score_threshold && hit.score < *expected.score_threshold) {
      return fmt::format("row {} at rank {} has score {:.8g}, below the threshold {:.8g}", hit.row,
                         hit.rank, hit.score, *expected.score_threshold);
    }
    if (!in_order || i == 0) continue;
    const ReturnedHit& before = hits[i - 1];
    if (before.score < hit.score || (before.score == hit.score && before.row > hit.row)) {
      return fmt::format("ranks {} and {} are in the wrong order", before.rank, hit.rank);
    }
  }
  return std::nullopt;
}

// Checks that as many rows are returned as pass. Allows a range if rounding decides whether rows
// reach the threshold.
std::optional<std::string> CheckCount(const Expectation& expected, std::size_t returned) {
  const double threshold = expected.score_threshold.value_or(-kInfinity);
  std::size_t certain = 0;
  std::size_t possible = 0;
  for (std::size_t row = 0; row < expected.scores.size(); ++row) {
    if (!expected.allowed[row]) continue;
    certain += expected.scores[row].low >= threshold ? 1 : 0;
    possible += expected.scores[row].high >= threshold ? 1 : 0;
  }
  const auto returned_of = [&](std::size_t passing) {
    return std::min(expected.k, passing - std::min(passing, expected.offset));
  };
  if (returned >= returned_of(certain) && returned <= returned_of(possible)) return std::nullopt;
  return fmt::format("{} returned instead of {}", base::Counted(returned, "hit"),
                     base::Grouped(returned_of(certain)));
}

// The greatest lower bound of the allowed rows' scores: the least score of a group's best row.
double BestLow(const Expectation& expected, std::span<const Row> rows) {
  double best = -kInfinity;
  for (const Row row : rows) {
    if (expected.allowed[row]) best = std::max(best, expected.scores[row].low);
  }
  return best;
}

// The expectation for the rows of one keyword.
Expectation RestrictToRows(const Expectation& expected, std::span<const Row> rows, std::size_t k) {
  Expectation part{.scores = expected.scores,
                   .allowed = std::vector<bool>(expected.scores.size()),
                   .k = k,
                   .score_threshold = expected.score_threshold};
  for (const Row row : rows) part.allowed[row] = expected.allowed[row];
  return part;
}

}  // namespace

std::optional<std::string> CheckHits(const Expectation& expected,
                                     std::span<const ReturnedHit> hits) {
  if (auto wrong = CheckEach(expected, hits, expected.offset, true)) return wrong;
  if (auto wrong = CheckCount(expected, hits.size())) return wrong;
  if (hits.empty()) return std::nullopt;
  std::vector<bool> returned(expected.scores.size());
  for (const ReturnedHit& hit : hits) returned[hit.row] = true;
  const double first = hits.front().score;
  const double last = hits.size() == expected.k ? hits.back().score : -kInfinity;
  const double threshold = expected.score_threshold.value_or(-kInfinity);
  std::size_t better = 0;     // rows certainly better than the last hit, but not returned
  std::size_t skippable = 0;  // rows possibly better than the first hit
  for (std::size_t row = 0; row < expected.scores.size(); ++row) {
    if (!expected.allowed[row] || returned[row]) continue;
    const ScoreRange& range = expected.scores[row];
    if (range.high >= first) ++skippable;
    if (range.low <= last || range.low < threshold) continue;
    ++better;
    if (range.high < first || better > expected.offset) {
      return fmt::format("row {} is missing: it scores {}, better than rank {} with {:.8g}", row,
                         RangeText(range), hits.back().rank, hits.back().score);
    }
  }
  if (skippable < expected.offset) {
    return fmt::format("only {} can be better than rank {}", base::Counted(skippable, "row"),
                       hits.front().rank);
  }
  return std::nullopt;
}

std::optional<std::string> CheckGroups(const Expectation& expected, std::size_t group_size,
                                       std::span<const KeywordRows> keywords,
                                       std::span<const ReturnedGroup> groups) {
  std::unordered_map<std::string, const KeywordRows*> by_keyword;
  std::size_t nonempty = 0;
  for (const KeywordRows& keyword : keywords) {
    by_keyword[keyword.keyword] = &keyword;
    if (BestLow(expected, keyword.rows) > -kInfinity) ++nonempty;
  }
  const std::size_t wanted = std::min(expected.k, nonempty - std::min(nonempty, expected.offset));
  if (groups.size() != wanted) {
    return fmt::format("{} returned instead of {}", base::Counted(groups.size(), "group"), wanted);
  }
  std::vector<std::string> returned;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const ReturnedGroup& group = groups[i];
    const std::string place = fmt::format("group {}: ", base::Quoted(group.keyword));
    if (group.rank != expected.offset + i + 1) {
      return fmt::format("{}rank {} instead of {}", place, group.rank, expected.offset + i + 1);
    }
    const auto known = by_keyword.find(group.keyword);
    if (known == by_keyword.end()) return place + "no row has this keyword";
    if (std::find(returned.begin(), returned.end(), group.keyword) != returned.end()) {
      return place + "returned twice";
    }
    returned.push_back(group.keyword);
    const Expectation part = RestrictToRows(expected, known->second->rows, group_size);
    if (auto wrong = CheckHits(part, group.hits)) return place + *wrong;
    if (i > 0 && groups[i - 1].hits.front().score < group.hits.front().score) {
      return place + "ranks below a group whose best row is worse";
    }
  }
  if (groups.empty()) return std::nullopt;
  const double last = groups.back().hits.front().score;
  std::size_t better = 0;
  for (const KeywordRows& keyword : keywords) {
    if (std::find(returned.begin(), returned.end(), keyword.keyword) != returned.end()) continue;
    if (BestLow(expected, keyword.rows) > last && ++better > expected.offset) {
      return fmt::format("group {} is missing: its best row is better than that of rank {}",
                         base::Quoted(keyword.keyword), groups.back().rank);
    }
  }
  return std::nullopt;
}

std::optional<std::string> CheckDiverse(const Expectation& expected, const DiversityRule& rule,
                                        const Oracle& oracle, std::span<const ReturnedHit> hits) {
  if (auto wrong = CheckEach(expected, hits, expected.offset, false)) return wrong;
  // The candidates are the rows that are certainly or possibly among the best.
  std::vector<Row> rows;
  for (std::size_t row = 0; row < expected.scores.size(); ++row) {
    if (expected.allowed[row]) rows.push_back(static_cast<Row>(row));
  }
  const std::size_t count = std::min(rows.size(), rule.candidates);
  if (hits.size() != std::min(expected.k, count - std::min(count, expected.offset))) {
    return fmt::format("{} returned instead of {}", base::Counted(hits.size(), "hit"),
                       std::min(expected.k, count));
  }
  const auto bound = [&](auto of) {
    std::vector<double> values;
    for (const Row row : rows) values.push_back(of(expected.scores[row]));
    std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(count) - 1,
                             std::greater<>());
    return values[count - 1];
  };
  if (count == 0) return std::nullopt;
  const double low = bound([](const ScoreRange& range) { return range.low; });
  const double high = bound([](const ScoreRange& range) { return range.high; });
  struct Candidate {
    Row row;
    bool certain;
    ScoreRange nearest{-kInfinity, -kInfinity};  // the greatest similarity to a chosen row
    bool chosen = false;
  };
  std::vector<Candidate> candidates;
  for (const Row row : rows) {
    if (expected.scores[row].high < low) continue;
    candidates.push_back({.row = row, .certain = expected.scores[row].low > high});
  }
  const auto relevance = [&](const Candidate& candidate) {
    const ScoreRange& score = expected.scores[candidate.row];
    if (candidate.nearest.high == -kInfinity) return score;  // the first choice is by score alone
    return ScoreRange{rule.lambda * score.low - (1 - rule.lambda) * candidate.nearest.high,
                      rule.lambda * score.high - (1 - rule.lambda) * candidate.nearest.low};
  };
  for (const ReturnedHit& hit : hits) {
    const auto chosen =
        std::ranges::find(candidates, hit.row, [](const Candidate& each) { return each.row; });
    if (chosen == candidates.end()) {
      return fmt::format("row {} at rank {} is not among the best {}", hit.row, hit.rank, count);
    }
    const double reached = relevance(*chosen).high + 0x1p-22;
    for (const Candidate& other : candidates) {
      if (other.chosen || !other.certain || relevance(other).low <= reached) continue;
      return fmt::format("at rank {} row {} is more relevant than row {}", hit.rank, other.row,
                         hit.row);
    }
    chosen->chosen = true;
    for (Candidate& other : candidates) {
      const ScoreRange similarity = oracle.RowSimilarity(hit.row, other.row);
      other.nearest.low = std::max(other.nearest.low, similarity.low);
      other.nearest.high = std::max(other.nearest.high, similarity.high);
    }
  }
  return std::nullopt;
}

std::optional<std::string> CheckOrder(std::span<const Row> expected,
                                      std::span<const ReturnedHit> hits) {
  if (hits.size() != expected.size()) {
    return fmt::format("{} returned instead of {}", base::Counted(hits.size(), "hit"),
                       expected.size());
  }
  for (std::size_t i = 0; i < hits.size(); ++i) {
    if (hits[i].row != expected[i]) {
      return fmt::format("row {} at rank {} instead of row {}", hits[i].row, i + 1, expected[i]);
    }
    if (hits[i].rank != i + 1) {
      return fmt::format("hit {} has rank {} instead of {}", i, hits[i].rank, i + 1);
    }
    if (hits[i].score != 0) return fmt::format("rank {} has a score", i + 1);
  }
  return std::nullopt;
}

}  // namespace simile::cli
