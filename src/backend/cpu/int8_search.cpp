#include "backend/cpu/int8_search.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <utility>

#include "backend/cpu/rescorer.h"
#include "backend/zero_query.h"
#include "base/memory_pages.h"
#include "simile/matrix_view.h"

namespace simile::backend::cpu {
namespace {

// One more query in a pass costs about as much as gathering row_count / 512 rows; scanning a
// gathered row for one query costs an eighth of gathering it. Estimated for AMX at a million rows
// of 384 dimensions: 0.15 ns a row of the pass, 80 ns to gather a row, 10 ns to score it; vector
// kernels take four times as long for a query of the pass. engine_cost.py measures gathers and
// passes under filters.
constexpr std::size_t kRowsOfJoining = 512;
constexpr std::size_t kScoresOfGathering = 8;

// Queries that a thread claims at a time.
constexpr std::size_t kQueriesAtOnce = 4;

}  // namespace

const Int8Kernel& KernelFor(const Int8Options& options, std::size_t query_count) {
  return query_count >= options.tuning.large_batch_min ? *options.large : *options.small;
}

CodeWidth WidthFor(std::size_t query_count, const PackedRows& packed) {
  return packed.shape().has_int4 && query_count <= kQueriesTogether ? CodeWidth::kInt4
                                                                    : CodeWidth::kByte;
}

const std::string& ChooseName(const Int8Options& options, const Int8Names& names,
                              const Int8Kernel& kernel, CodeWidth width) {
  if (width == CodeWidth::kInt4) return names.int4;
  return &kernel == options.large ? names.large : names.small;
}

Int8Search::Int8Search(const Int8Options& options, const Int8Names& names, unsigned threads)
    : options_(options),
      names_(names),
      scan_(*options.canonical, threads, names.scan.c_str()),
      gather_(scan_, names.gather.c_str()),
      memory_(threads),
      finish_(options.candidates_together),
      shares_(threads) {
  open_shares_.reserve(threads);
}

void Int8Search::Begin(const SegmentRows& rows, const PackedRows* packed, const SearchBatch& batch,
                       SearchResult& result) {
  End();
  rows_ = &rows;
  packed_ = packed;
  batch_ = batch;
  result_ = &result;
  PrepareResult(batch, rows, result);
  if (packed == nullptr) return scan_.Begin(rows, batch, result);
  ListMasks();
}

void Int8Search::End() {
  DropPass();
  steps_.Reset();
  group_ = 0;
  group_begun_ = false;
  groups_counted_ = 0;
}

bool Int8Search::Advance(ThreadPool& pool, const Turn& turn) {
  if (packed_ == nullptr) return scan_.Advance(pool, turn);
  return steps_.Do(0, [&] {
    if (!CountPassing(turn)) return false;
    ChooseGathers();
    return true;
  }) && steps_.Do(1, [&] {
    if (!AdvanceGathers(pool, turn)) return false;
    BeginPasses(true);
    return true;
  }) && steps_.Do(2, [&] {
    if (!AdvancePasses(pool, turn)) return false;
    // The end of a pass has detected which guesses were wrong: those queries are
    // searched for again with proven gates.
    scanned_.swap(uncertain_);
    BeginPasses(false);
    return true;
  }) && steps_.Do(3, [&] { return AdvancePasses(pool, turn); });
}

std::uint64_t Int8Search::bytes() const {
  std::uint64_t bytes = scan_.bytes() + gather_.bytes() + memory_.bytes() + finish_.bytes();
  for (const Share& share : shares_) bytes += share.memory.bytes();
  return bytes;
}

// Answers queries of zeros, and sorts those with a mask by their masks.
void Int8Search::ListMasks() {
  const auto mask_of = [&](std::uint32_t query) { return batch_.specs[query].mask; };
  scanned_.clear();
  masked_.clear();
  for (std::uint32_t query = 0; query < batch_.specs.size(); ++query) {
    if (IsZeroVector(batch_.queries[query])) {
      AnswerZeroQuery(*rows_, batch_.specs[query], query, *result_);
      continue;
    }
    (mask_of(query) == nullptr ? scanned_ : masked_).push_back(query);
  }
  std::ranges::sort(masked_, [&](std::uint32_t a, std::uint32_t b) {
    return mask_of(a) != mask_of(b) ? std::less<>()(mask_of(a), mask_of(b)) : a < b;
  });
  groups_.clear();
  for (std::size_t first = 0, last = 0; first < masked_.size(); first = last) {
    const RowMask* mask = mask_of(masked_[first]);
    while (last < masked_.size() && mask_of(masked_[last]) == mask) ++last;
    groups_.push_back({.first = first, .count = last - first});
  }
}

bool Int8Search::CountPassing(const Turn& turn) {
  const Row end = rows_->first_row + static_cast<Row>(rows_->rows.row_count());
  while (groups_counted_ < groups_.size()) {
    MaskGroup& group = groups_[groups_counted_++];
    const RowMask& mask = *batch_.specs[masked_[group.first]].mask;
    group.passing = mask.AllowedCount(rows_->first_row, end);
    if (groups_counted_ < groups_.size() && turn.IsOver()) return false;
  }
  return true;
}

// A pass reads all codes, however many queries need it, and one more query costs little. So the
// rows of a mask are gathered if that saves the whole pass, or if they are so few that joining the
// pass costs more.
void Int8Search::ChooseGathers() {
  const std::size_t row_count = rows_->rows.row_count();
  const std::size_t few = row_count / options_.tuning.gather_share;
  std::size_t rows_instead = 0;  // rows gathered instead of a pass for masked queries alone
  for (MaskGroup& group : groups_) {
    group.gathered = group.passing * (1 + group.count / kScoresOfGathering) <=
                     group.count * row_count / kRowsOfJoining;
    if (!group.gathered) rows_instead += group.passing;
  }
  const bool has_pass = !scanned_.empty() || rows_instead > few;
  for (MaskGroup& group : groups_) {
    group.gathered = group.gathered || !has_pass;
    if (group.gathered) continue;
    const auto queries = QueriesOf(group);
    scanned_.insert(scanned_.end(), queries.begin(), queries.end());
  }
}

bool Int8Search::AdvanceGathers(ThreadPool& pool, const Turn& turn) {
  bool any = false;  // anything done in this turn
  for (; group_ < groups_.size(); ++group_) {
    const MaskGroup& group = groups_[group_];
    if (!group.gathered) continue;
    if (std::exchange(any, true) && turn.IsOver()) return false;
    if (!group_begun_) gather_.Begin(*rows_, batch_, QueriesOf(group), *result_);
    group_begun_ = true;
    if (!gather_.Advance(pool, turn)) return false;
    group_begun_ = false;
  }
  return true;
}

void Int8Search::BeginPasses(bool speculative) {
  speculative_ = speculative;
  queries_left_ = scanned_;
  uncertain_.clear();
}

bool Int8Search::AdvancePasses(ThreadPool& pool, const Turn& turn) {
  for (;;) {
    if (!segment_) {
      if (queries_left_.empty()) break;
      BeginPass();
    }
    if (!AdvancePass(pool, turn)) return false;
    for (const Int8Pass* const pass : passes_) Conclude(*pass);
    DropPass();
  }
  assert(speculative_ || uncertain_.empty());
  return true;
}

void Int8Search::BeginPass() {
  const auto threads = static_cast<unsigned>(shares_.size());
  const std::size_t count =
      QueriesOfInt8Pass(batch_.specs, queries_left_, rows_->rows.row_count(), threads);
  const std::span<const std::uint32_t> queries = queries_left_.first(count);
  segment_.emplace(Int8Segment{*rows_, *packed_, KernelFor(options_, count), scan_.kernel(),
                               options_.small_pass_bytes});
  passes_.clear();
  pass_steps_.Reset();
  by_row_ = FinishesByRow(queries);
  if (threads > 1 && count / threads >= options_.tuning.queries_of_thread_min) {
    BeginShares(queries);
  } else {
    pass_.emplace(*segment_, batch_, queries, speculative_, WidthFor(count, *packed_), memory_,
                  *result_);
    passes_.push_back(&*pass_);
  }
  queries_left_ = queries_left_.subspan(count);
}

void Int8Search::BeginShares(std::span<const std::uint32_t> queries) {
  const std::size_t count = shares_.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t first = queries.size() * i / count;
    const std::size_t end = queries.size() * (i + 1) / count;
    shares_[i].pass.emplace(*segment_, batch_, queries.subspan(first, end - first), speculative_,
                            CodeWidth::kByte, shares_[i].memory, *result_);
    shares_[i].done = false;
    passes_.push_back(&*shares_[i].pass);
  }
}

bool Int8Search::AdvancePass(ThreadPool& pool, const Turn& turn) {
  const auto scan = [&] {
    const bool done =
        pass_ ? pass_->Scan(pool, turn)
              : ForEachShare(pool, turn, [&](Int8Pass& pass) { return pass.Scan(alone_, turn); });
    if (done) BeginFinish();
    return done;
  };
  const auto finish = [&] {
    if (by_row_) return finish_.Advance(pool, *segment_, turn);
    if (pass_) return pass_->Finish(pool, turn);
    return ForEachShare(pool, turn, [&](Int8Pass& pass) { return pass.Finish(alone_, turn); });
  };
  return pass_steps_.Do(0, scan) && pass_steps_.Do(1, finish);
}

void Int8Search::BeginFinish() {
  for (Share& share : shares_) share.done = false;
  if (by_row_) finish_.Begin(passes_, static_cast<unsigned>(shares_.size()));
}

template <class Work>
bool Int8Search::ForEachShare(ThreadPool& pool, const Turn& turn, Work work) {
  shares_claimed_.Reset();
  open_shares_.clear();
  for (Share& share : shares_) {
    if (!share.done) open_shares_.push_back(&share);
  }
  // A turn may have fewer threads than shares: each turn begins with another share.
  if (!open_shares_.empty()) {
    std::ranges::rotate(
        open_shares_,
        open_shares_.begin() + static_cast<std::ptrdiff_t>(first_open_++ % open_shares_.size()));
  }
  auto run = [&](unsigned /*participant*/) {
    shares_claimed_.Claim(turn, open_shares_.size(), 1, [&](std::size_t i, std::size_t) {
      open_shares_[i]->done = work(*open_shares_[i]->pass);
    });
  };
  pool.Run(run);
  return std::ranges::all_of(shares_, &Share::done);
}

// Whether the candidates of these queries are scored row by row. That pays in a pass that uses all
// threads, for several queries that want at least options_.row_order_hits_per_row hits a row
// together, by their k.
bool Int8Search::FinishesByRow(std::span<const std::uint32_t> queries) const {
  const std::size_t row_count = rows_->rows.row_count();
  std::size_t wanted = 0;
  for (const std::uint32_t query : queries)
    wanted += std::min<std::size_t>(batch_.specs[query].k, row_count);
  const bool several = queries.size() >= Rescorer::kRowsScoredTogether;
  return several && !IsSmallPass(packed_->shape(), queries.size(), options_.small_pass_bytes) &&
         wanted / row_count >= options_.row_order_hits_per_row;
}

void Int8Search::Conclude(const Int8Pass& pass) {
  const std::string& name = ChooseName(options_, names_, segment_->kernel, pass.width());
  for (std::size_t i = 0; i < pass.queries().size(); ++i) {
    const std::uint32_t query = pass.queries()[i];
    result_->SetEngine(query, name.c_str());
    if (!pass.certain(i)) uncertain_.push_back(query);
  }
}

void Int8Search::DropPass() {
  passes_.clear();
  pass_.reset();
  for (Share& share : shares_) share.pass.reset();
  segment_.reset();
}

void BatchFinish::Begin(std::span<Int8Pass* const> passes, unsigned threads) {
  List(passes);
  Reserve(threads);
  left_ = queries_;
  some_ = {};
}

bool BatchFinish::Advance(ThreadPool& pool, const Int8Segment& segment, const Turn& turn) {
  for (;;) {
    if (!some_.empty() && !AdvanceSome(pool, segment, turn)) return false;
    if (left_.empty()) return true;
    TakeSome();
  }
}

std::uint64_t BatchFinish::bytes() const { return candidates_.bytes() + scorer_.bytes(); }

void BatchFinish::TakeSome() {
  std::size_t count = 0;
  std::size_t candidates = 0;
  Candidate* to = candidates_.As<Candidate>();
  while (count < left_.size() &&
         (count == 0 || candidates + left_[count].candidate_count <= candidates_together_)) {
    Query& query = left_[count++];
    query.all = {to + candidates, query.candidate_count};
    candidates += query.candidate_count;
  }
  some_ = left_.first(count);
  left_ = left_.subspan(count);
  steps_.Reset();
  claimed_.Reset();
}

void BatchFinish::List(std::span<Int8Pass* const> passes) {
  queries_.clear();
  for (Int8Pass* pass : passes) {
    for (std::size_t query = 0; query < pass->queries().size(); ++query)
      queries_.push_back({pass, query, pass->CandidateCount(query), {}});
  }
}

// Reserves for the greatest possible number of candidates, because the number differs from batch to
// batch.
void BatchFinish::Reserve(unsigned threads) {
  std::size_t of_one = 0;
  for (const Query& query : queries_)
    of_one = std::max(of_one, query.pass->CandidatesMax(query.query_of_pass));
  const std::size_t together = std::max(candidates_together_, of_one);
  candidates_.Reserve(together * sizeof(Candidate));
  base::GrowTo(scratch_, threads);
  for (CandidateScratch& scratch : scratch_) scratch.Reserve(of_one);
  base::GrowTo(to_score_, queries_.size());
  scorer_.Reserve(together, threads);
}

template <class Work>
bool BatchFinish::ForEach(ThreadPool& pool, const Turn& turn, Work work) {
  auto job = [&](unsigned participant) {
    claimed_.Claim(turn, some_.size(), kQueriesAtOnce, [&](std::size_t first, std::size_t end) {
      for (std::size_t i = first; i < end; ++i) work(some_[i], to_score_[i], scratch_[participant]);
    });
  };
  pool.Run(job);
  if (!claimed_.AreDone(some_.size())) return false;
  claimed_.Reset();
  return true;
}

bool BatchFinish::AdvanceSome(ThreadPool& pool, const Int8Segment& segment, const Turn& turn) {
  const auto wanted = [](const Query& query) {
    return query.pass->HitsWanted(query.query_of_pass);
  };
  const auto copy = [&](Query& query, auto& to_score, CandidateScratch& scratch) {
    query.all = query.all.first(query.pass->CopyCandidates(query.query_of_pass, query.all.data()));
    query.first = MoveExpectedFirst(query.all, wanted(query), scratch);
    to_score = {query.pass->Vector(query.query_of_pass), query.all.first(query.first)};
  };
  const auto drop = [&](Query& query, auto& to_score, CandidateScratch& scratch) {
    query.rescored = to_score.scored;
    query.all = query.all.first(DropBeaten(query.all, query.first, wanted(query), scratch));
    to_score.candidates = query.all;
  };
  const auto answer = [&](Query& query, auto& to_score, CandidateScratch& scratch) {
    query.pass->WriteAnswer(query.query_of_pass,
                            RankBest(query.all, wanted(query), segment.rows.first_row, scratch),
                            query.rescored + to_score.scored);
  };
  const auto each_then_begin = [&](const auto& work) {
    if (!ForEach(pool, turn, work)) return false;
    scorer_.Begin(segment.rows.rows, std::span(to_score_).first(some_.size()));
    return true;
  };
  const auto score = [&] { return scorer_.Advance(pool, segment.canonical, turn); };
  return steps_.Do(0, [&] { return each_then_begin(copy); }) && steps_.Do(1, score) &&
         steps_.Do(2, [&] { return each_then_begin(drop); }) && steps_.Do(3, score) &&
         steps_.Do(4, [&] { return ForEach(pool, turn, answer); });
}

}  // namespace simile::backend::cpu
