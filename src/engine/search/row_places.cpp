#include "engine/search/row_places.h"

#include <algorithm>
#include <cassert>

#include "simile/rank_key.h"

namespace simile::engine {
namespace {

// Rows in a given order that are read in one piece: with a look at masks alone, or at payloads.
constexpr std::size_t kOrderedOfPiece = 1U << 18;
constexpr std::size_t kGroupedOfPiece = 2'048;
// Groups that are ranked in one piece: an estimated 10 ns each.
constexpr std::size_t kGroupsOfPiece = 1U << 17;

// The number of rows that the answer is chosen from.
std::size_t ReachOf(const ResolvedQuery& query) {
  return query.diversity ? query.diversity->candidates : query.k;
}

}  // namespace

PlaceFinder::PlaceFinder(const ResolvedQuery& query, MatrixView vectors, const Snapshot& snapshot,
                         std::span<const Hit> answer, SegmentSearch& search, Execution& execution)
    : query_(query),
      snapshot_(snapshot),
      answer_(answer),
      search_(search),
      execution_(execution),
      scorer_(query, vectors, snapshot, search, execution) {
  assert(!query.explained.empty());
  for (const Row row : query.explained) places_.rows.emplace_back().row = row;
  if (query.grouping) {
    best_of_group_.resize(query.grouping->field.number_end());
    for (std::size_t i = 0; i < places_.rows.size(); ++i) {
      query.grouping->field.ReadGroups(places_.rows[i].row, numbers_);
      for (const std::uint32_t number : numbers_) {
        groups_[number].push_back({i, places_.rows[i].groups.size()});
        places_.rows[i].groups.push_back({number, 0, 0});
      }
    }
  }
  if (query.order) {
    ordered_.emplace(*query.order, snapshot.row_count(), nullptr, std::span<const Row>());
    rank_of_group_.resize(best_of_group_.size());
    rows_of_group_.resize(best_of_group_.size());
    stage_ = Stage::kOrdering;
    return;
  }
  execution.engines.Add(kEveryRow);
  scorer_.Begin(query.explained, 1);
  scorer_.OfferTo([this](RankKey key) { ascending_.emplace_back(key, ascending_.size()); });
}

absl::Status PlaceFinder::Work() {
  switch (stage_) {
    case Stage::kScoringExplained:
    case Stage::kScoringAll:
      return ScoreSome();
    case Stage::kRankingGroups:
      RankSomeGroups();
      break;
    case Stage::kOrdering:
      ordered_->ReadPiece();
      if (ordered_->done()) stage_ = Stage::kReading;
      break;
    case Stage::kReading:
      ReadSome();
      break;
    case Stage::kComparing:
      return CompareNext();
    case Stage::kDone:
      break;
  }
  return absl::OkStatus();
}

absl::Status PlaceFinder::ScoreSome() {
  if (!scorer_.done()) {
    if (absl::Status status = scorer_.ScorePiece(); !status.ok()) return status;
  }
  if (!scorer_.done()) return absl::OkStatus();
  if (stage_ == Stage::kScoringExplained) {
    BeginCounting();
  } else {
    EndCounting();
  }
  return absl::OkStatus();
}

void PlaceFinder::BeginCounting() {
  for (const auto& [key, i] : ascending_) places_.rows[i].score = key.score();
  std::ranges::sort(ascending_);
  between_.assign(ascending_.size() + 1, 0);
  // A field without values has no groups, and then the answer reaches nothing.
  const std::size_t reach = std::max<std::size_t>(1, ReachOf(query_));
  best_buffer_.resize(certificate::TopK::CapacityFor(
      reach, query_.grouping ? best_of_group_.size() : snapshot_.row_count()));
  best_ = certificate::TopK(best_buffer_, reach, query_.score_threshold);
  scorer_.BeginAll(query_.mask.get(), 1);
  scorer_.OfferTo([this](RankKey key) { Count(key); });
  stage_ = Stage::kScoringAll;
}

void PlaceFinder::Count(RankKey key) {
  if (!(key.score() >= query_.score_threshold)) return;
  const auto not_worse = std::ranges::lower_bound(
      ascending_, key, {}, [](const auto& explained) { return explained.first; });
  ++between_[static_cast<std::size_t>(not_worse - ascending_.begin())];
  if (query_.grouping) {
    CountInGroups(key);
  } else {
    best_.Offer(key);
  }
}

void PlaceFinder::CountInGroups(RankKey key) {
  query_.grouping->field.ReadGroups(key.row(), numbers_);
  for (const std::uint32_t number : numbers_) {
    best_of_group_[number] = std::max(best_of_group_[number], key);
    const auto explained = groups_.find(number);
    if (explained == groups_.end()) continue;
    for (const GroupRef& of : explained->second) {
      RowPlace& place = places_.rows[of.row];
      if (key > RankKey(place.score, place.row)) ++place.groups[of.group].rows_before;
    }
  }
}

void PlaceFinder::EndCounting() {
  std::uint64_t before = 0;
  for (std::size_t i = ascending_.size(); i-- > 0;) {
    before += between_[i + 1];
    places_.rows[ascending_[i].second].rows_before = before;
  }
  if (query_.grouping) return BeginRankingGroups();
  SetScoreNeeded();
  EndRanking();
}

void PlaceFinder::SetScoreNeeded() {
  const std::span<const RankKey> best = best_.Sorted();
  if (!best.empty() && best.size() == ReachOf(query_)) places_.score_needed = best.back().score();
}

void PlaceFinder::BeginRankingGroups() {
  for (std::size_t row = 0; row < places_.rows.size(); ++row) {
    const RowPlace& place = places_.rows[row];
    const RankKey key(place.score, place.row);
    for (std::size_t group = 0; group < place.groups.size(); ++group) {
      const std::uint32_t number = place.groups[group].number;
      own_groups_.push_back({{std::max(best_of_group_[number], key), number}, {row, group}});
    }
  }
  std::ranges::sort(own_groups_, [](const OwnGroup& a, const OwnGroup& b) {
    return a.ranked.RanksBefore(b.ranked);
  });
  groups_between_.assign(own_groups_.size() + 1, 0);
  stage_ = Stage::kRankingGroups;
}

void PlaceFinder::RankSomeGroups() {
  const std::size_t end = std::min(best_of_group_.size(), position_ + kGroupsOfPiece);
  for (; position_ < end; ++position_) {
    const RankedGroup group{best_of_group_[position_], static_cast<std::uint32_t>(position_)};
    if (group.best == RankKey()) continue;  // none of its rows may be returned
    best_.Offer(group.best);
    const auto after = std::ranges::partition_point(
        own_groups_, [&](const OwnGroup& own) { return !group.RanksBefore(own.ranked); });
    ++groups_between_[static_cast<std::size_t>(after - own_groups_.begin())];
  }
  if (position_ < best_of_group_.size()) return;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < own_groups_.size(); ++i) {
    before += groups_between_[i];
    const GroupRef& place = own_groups_[i].place;
    places_.rows[place.row].groups[place.group].groups_before = before;
  }
  for (RowPlace& place : places_.rows) CountOwnGroups(place);
  SetScoreNeeded();
  EndRanking();
}

// Counts the row in each of its groups, as if the row could be returned.
void PlaceFinder::CountOwnGroups(RowPlace& place) const {
  const RankKey key(place.score, place.row);
  std::vector<RankedGroup> with_row;
  std::vector<RankedGroup> without_row;
  for (const RowPlace::GroupPlace& group : place.groups) {
    const RankKey best = best_of_group_[group.number];
    with_row.push_back({std::max(best, key), group.number});
    if (best != RankKey()) without_row.push_back({best, group.number});
  }
  const auto ranks_before = [](const RankedGroup& a, const RankedGroup& b) {
    return a.RanksBefore(b);
  };
  std::ranges::sort(with_row, ranks_before);
  std::ranges::sort(without_row, ranks_before);
  for (RowPlace::GroupPlace& group : place.groups) {
    const RankedGroup own{std::max(best_of_group_[group.number], key), group.number};
    const auto count_before = [&](const std::vector<RankedGroup>& groups) {
      return static_cast<std::uint64_t>(std::ranges::lower_bound(groups, own, ranks_before) -
                                        groups.begin());
    };
    group.groups_before += count_before(with_row) - count_before(without_row);
  }
}

std::uint64_t PlaceFinder::GroupBytes(const ResolvedQuery& query) {
  if (query.explained.empty() || !query.grouping) return 0;
  const std::size_t of_order = query.order ? 2 * sizeof(std::uint64_t) : 0;
  return query.grouping->field.number_end() * (sizeof(RankKey) + of_order);
}

bool PlaceFinder::MayReturn(Row row) const {
  return (query_.mask == nullptr || query_.mask->Allows(row)) &&
         !std::ranges::binary_search(query_.excluded(), row);
}

void PlaceFinder::ReadSome() {
  const std::span<const Row> rows = ordered_->rows();
  const std::size_t end =
      std::min(rows.size(), position_ + (query_.grouping ? kGroupedOfPiece : kOrderedOfPiece));
  for (; position_ < end; ++position_) ReadOrdered(rows[position_]);
  if (position_ == rows.size()) EndRanking();
}

void PlaceFinder::ReadOrdered(Row row) {
  if (query_.grouping) query_.grouping->field.ReadGroups(row, numbers_);
  const auto explained = std::ranges::lower_bound(query_.explained, row);
  if (explained != query_.explained.end() && *explained == row) {
    RowPlace& place = places_.rows[static_cast<std::size_t>(explained - query_.explained.begin())];
    place.rows_before = rows_before_;
    std::uint64_t groups_before = groups_before_;
    for (RowPlace::GroupPlace& group : place.groups) {
      const std::uint64_t rank = rank_of_group_[group.number];
      group.groups_before = rank > 0 ? rank - 1 : groups_before++;
      group.rows_before = rows_of_group_[group.number];
    }
  }
  if (!MayReturn(row)) return;
  ++rows_before_;
  for (const std::uint32_t number : numbers_) {
    if (rank_of_group_[number] == 0) rank_of_group_[number] = ++groups_before_;
    ++rows_of_group_[number];
  }
}

bool PlaceFinder::IsCandidate(const RowPlace& place) const {
  return place.rows_before < query_.diversity->candidates && MayReturn(place.row) &&
         place.score >= query_.score_threshold;
}

absl::Status PlaceFinder::CompareNext() {
  if (answer_.empty() || compared_ == places_.rows.size()) {
    stage_ = Stage::kDone;
    return absl::OkStatus();
  }
  RowPlace& place = places_.rows[compared_++];
  if (!IsCandidate(place)) return absl::OkStatus();
  const auto chosen = std::ranges::find(answer_, place.row, &Hit::row);
  const auto before =
      static_cast<std::size_t>(std::min(chosen, answer_.end() - 1) - answer_.begin());
  auto step = MeasureStep({place.row, place.score}, before);
  if (!step.ok()) return step.status();
  step->chosen = chosen != answer_.end();
  step->chosen_marginal_relevance = step->marginal_relevance;
  if (!step->chosen) {
    const auto other = MeasureStep(answer_.back(), before);
    if (!other.ok()) return other.status();
    step->chosen_marginal_relevance = other->marginal_relevance;
  }
  place.diversity = *std::move(step);
  return absl::OkStatus();
}

absl::StatusOr<DiversityStep> PlaceFinder::MeasureStep(const Hit& hit, std::size_t before) {
  const double lambda = query_.diversity->lambda;
  DiversityStep step;
  step.step = static_cast<std::uint32_t>(before + 1);
  step.marginal_relevance = lambda * hit.score;
  if (before == 0) return step;
  std::vector<Row> rows;
  for (const Hit& chosen : answer_.first(before)) rows.push_back(chosen.row);
  std::ranges::sort(rows);
  std::vector<float> similarities(rows.size());
  const MatrixView vector = snapshot_.dataset->vectors.view().Slice(hit.row, 1);
  const absl::StatusOr<FallbackBackend> fallback =
      search_.Score(snapshot_.segments, vector, rows, similarities);
  if (!fallback.ok()) return fallback.status();
  execution_.AddFallback(*fallback);
  execution_.cost.rows_rescored += rows.size();
  const auto nearest = std::ranges::max_element(similarities);
  step.similarity = *nearest;
  step.nearest = rows[static_cast<std::size_t>(nearest - similarities.begin())];
  step.marginal_relevance -= (1.0 - lambda) * step.similarity;
  return step;
}

}  // namespace simile::engine
