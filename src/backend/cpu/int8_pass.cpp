#include "backend/cpu/int8_pass.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <tuple>
#include <utility>

#include "backend/cpu/row_order_scorer.h"
#include "base/memory_pages.h"
#include "certificate/top_k.h"

namespace simile::backend::cpu {
namespace {

// The most queries of a pass, because the memory for hits grows with them.
constexpr std::size_t kQueriesMax = 1'024;
static_assert(kQueriesMax <= std::size_t{1} << (32 - kPairRowBits));
static_assert(kQueriesMax <= RowOrderScorer::kQueriesMax);
// The most bytes of the candidates' buffers of a pass, over all threads and queries.
constexpr std::size_t kCandidateBytesMax = 256U << 20;
// The most bytes of candidates' buffers that a thread keeps for the next pass. A pass with larger
// buffers (more than 500 queries of k 1,000) takes so long that allocating them again hardly
// counts.
constexpr std::size_t kCandidateBytesKept = 32U << 20;

// Queries that a thread claims at a time to pack.
constexpr std::size_t kQueriesAtOnce = 4;

// The queries of a block that are scanned together are whole pairs of tiles.
constexpr std::size_t kQueriesMultiple = 2 * kTileQueries;

// A query starts without a gate, so that every row of its first piece is a hit: the first piece is
// small, and each next one not much larger.
constexpr std::size_t kFirstPieceRows = kRowsTogether;
constexpr std::size_t kPieceGrowth = 4;

// Bytes are read instead of int4 when int4 finds more than one candidate in this many rows.
// Estimated: a canonical score costs about as much as ten rows of the pass, and int4 saves half of
// each row; the row to score must also be fetched from another place in memory.
constexpr std::size_t kRowsForOneCandidate = 40;

// The rounding errors of a cheap score's columns are independent and mostly cancel. The bound
// assumes that all add up; the standard deviation is 0.71 / sqrt(dim) of the bound
// (docs/design/certificate.md). Seven standard deviations reject a correct row with probability
// below 1e-11; the end of the pass detects it and the query is searched again.
float GuessCaution(std::size_t rotated_dim) {
  return std::min(1.0F, 5.0F / std::sqrt(static_cast<float>(rotated_dim)));
}

std::size_t ComputeCapacity(const QuerySpec& spec, std::size_t row_count, std::size_t threads) {
  return Candidates::CapacityFor(std::min<std::size_t>(spec.k, row_count), row_count, threads);
}

// Divides the queries of a pass evenly into as few parts as a block's products allow.
std::size_t QueriesAtOnce(const Int8Kernel& kernel, const PackedShape& shape,
                          std::size_t query_count) {
  const std::size_t products_of_query = shape.block_rows * shape.rotated_dim;
  const std::size_t most = std::max(kQueriesMultiple, kernel.products_at_once / products_of_query);
  const std::size_t parts = (query_count + most - 1) / most;
  const std::size_t part = (query_count + parts - 1) / parts;
  return (part + kQueriesMultiple - 1) / kQueriesMultiple * kQueriesMultiple;
}

void RaiseTo(std::atomic<float>& gate, float value) {
  float seen = gate.load(std::memory_order_relaxed);
  while (seen < value && !gate.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

// Each query after the first takes about a quarter of the time of the first (engine_bench, 5,000
// rows on an EPYC).
bool IsSmallPass(const PackedShape& shape, std::size_t query_count, std::size_t small_pass_bytes) {
  const std::size_t code_bytes = shape.position_count() * shape.rotated_dim;
  return code_bytes / 4 * (query_count + 3) <= small_pass_bytes;
}

std::size_t QueriesOfInt8Pass(std::span<const QuerySpec> specs,
                              std::span<const std::uint32_t> queries, std::size_t row_count,
                              unsigned threads) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  for (const std::uint32_t query : queries) {
    // The threads divide the rows or the queries.
    const std::size_t candidates =
        std::max(ComputeCapacity(specs[query], row_count, threads) * threads,
                 ComputeCapacity(specs[query], row_count, 1));
    bytes += candidates * sizeof(Candidate);
    if (count == kQueriesMax || (bytes > kCandidateBytesMax && count > 0)) break;
    ++count;
  }
  return count;
}

Int8Pass::Int8Pass(const Int8Segment& segment, const SearchBatch& batch,
                   std::span<const std::uint32_t> queries, bool speculative, CodeWidth width,
                   Int8Memory& memory, SearchResult& result)
    : segment_(segment),
      shape_(segment.packed.shape()),
      bound_(segment.rows.rows.dim()),
      batch_(batch),
      queries_(queries),
      speculative_(speculative),
      width_(width),
      caution_(speculative ? GuessCaution(shape_.rotated_dim) : 1.0F),
      small_(IsSmallPass(shape_, queries.size(), segment.small_pass_bytes)),
      few_(small_ || queries.size() <= kQueriesAtOnce),
      queries_at_once_(QueriesAtOnce(segment.kernel, shape_, queries.size())),
      memory_(memory),
      result_(result) {
  assert(shape_.block_rows <= std::size_t{1} << kPairRowBits);
  const std::size_t count = queries.size();
  memory_.packed_.Reset(segment.packed, segment.kernel.four_columns_max, count);
  if (memory_.gates_size_ < count) {
    memory_.gates_ = std::make_unique<std::atomic<float>[]>(count);
    memory_.gates_size_ = count;
  }
  std::size_t buffer = 0;
  std::size_t merged_max = 0;
  for (std::size_t query = 0; query < count; ++query) {
    memory_.gates_[query].store(Spec(query).score_threshold, std::memory_order_relaxed);
    const std::size_t own = ComputeCapacity(Spec(query), shape_.row_count, memory_.workers_.size());
    buffer += own;
    merged_max = std::max(merged_max, CandidatesMax(query));
  }
  base::GrowTo(memory_.certain_, count);
  base::GrowTo(memory_.excluded_, count);
  memory_.left_.clear();
  memory_.left_.reserve(memory_.workers_.size() * std::tuple_size_v<decltype(Worker::left)>);
  for (Worker& worker : memory_.workers_) {
    worker.progress = {};
    worker.left_count = 0;
    PackedQueries::Reserve(segment.packed, worker.packing);
    worker.product.Reserve(ScratchBytes(count));
    const std::size_t hits_max = count * shape_.block_rows;
    worker.hits.Reserve(hits_max * (sizeof(std::uint32_t) + sizeof(std::int32_t)));
    worker.hit_list = {worker.hits.As<std::uint32_t>(), worker.hits.As<std::int32_t>() + hits_max,
                       0};
    if (shape_.has_int4) worker.int4_candidates.reserve(shape_.block_rows);
    worker.starts.Reserve(count * sizeof(std::int32_t));
    base::GrowTo(worker.bounds, count);
    worker.buffers.Reserve(buffer * sizeof(Candidate));
    base::GrowTo(worker.candidates, count);
    base::GrowTo(worker.guesses, count);
    base::GrowTo(worker.rescored, count);
    worker.merged.Reserve(merged_max * sizeof(Candidate));
    worker.scratch.Reserve(merged_max);
  }
}

Int8Pass::~Int8Pass() {
  for (Worker& worker : memory_.workers_) worker.buffers.DropBeyond(kCandidateBytesKept);
}

bool Int8Pass::Scan(ThreadPool& pool, const Turn& turn) {
  auto begin = [&](unsigned participant) { BeginQueries(participant, turn); };
  auto scan = [&](unsigned participant) { ScanChunks(participant, turn); };
  return steps_.Do(0, [&] {
    RunJob(pool, begin, few_);
    return begun_.AreDone(queries_.size());
  }) && steps_.Do(1, [&] {
    if (shape_.block_count() == 1) return true;
    RunJob(pool, scan, small_);
    const bool all_claimed =
        next_chunk_.load(std::memory_order_relaxed) * shape_.chunk_blocks >= shape_.block_count();
    return CollectLeft() && all_claimed;
  });
}

void Int8Pass::BeginQueries(unsigned participant, const Turn& turn) {
  Worker& worker = memory_.workers_[participant];
  bool entered = false;
  begun_.Claim(turn, queries_.size(), kQueriesAtOnce, [&](std::size_t first, std::size_t end) {
    if (!worker.progress.joined) Join(worker);
    if (!std::exchange(entered, true)) segment_.kernel.enter(queries_.size());
    for (std::size_t query = first; query < end; ++query) {
      memory_.packed_.Pack(segment_.packed, query, Vector(query), batch_.queries.padded_dim(),
                           worker.packing);
      memory_.excluded_[query].Reset(Spec(query).excluded_rows);
    }
    ScanFirstBlock(worker, {first, end - first});
  });
  if (entered) segment_.kernel.leave();
}

void Int8Pass::Join(Worker& worker) const {
  worker.progress.joined = true;
  worker.progress.rows_seen = segment_.packed.RowsOfBlock(0);
  worker.progress.rows_begun = shape_.chunk_blocks * shape_.block_rows;
  worker.progress.rows_when_tightened = worker.progress.rows_seen;
  auto* buffer = worker.buffers.As<Candidate>();
  for (std::size_t query = 0; query < queries_.size(); ++query) {
    const std::size_t size =
        ComputeCapacity(Spec(query), shape_.row_count, memory_.workers_.size());
    worker.candidates[query] =
        Candidates({buffer, size}, HitsWanted(query), Spec(query).score_threshold);
    worker.guesses[query] = {};
    worker.rescored[query] = 0;
    buffer += size;
  }
}

void Int8Pass::ScanFirstBlock(Worker& worker, const Queries& queries) {
  const std::size_t rows = segment_.packed.RowsOfBlock(0);
  std::size_t first = 0;
  for (std::size_t piece = kFirstPieceRows; first < rows; first += piece, piece *= kPieceGrowth) {
    ScanPiece(worker, {0, first, std::min(piece, rows - first)}, queries, {});
    for (std::size_t query = queries.first; query < queries.first + queries.count; ++query)
      Tighten(worker, query);
  }
}

void Int8Pass::ScanChunks(unsigned participant, const Turn& turn) {
  Worker& worker = memory_.workers_[participant];
  const std::size_t block_count = shape_.block_count();
  // Places that earlier turns left come first.
  const auto claim = [&]() -> Place {
    const std::size_t left = next_left_.fetch_add(1, std::memory_order_relaxed);
    if (left < memory_.left_.size()) return memory_.left_[left];
    const std::size_t first =
        next_chunk_.fetch_add(1, std::memory_order_relaxed) * shape_.chunk_blocks;
    // The first block has been scanned by BeginQueries.
    return {std::max<std::size_t>(first, 1), std::min(first + shape_.chunk_blocks, block_count), 0,
            std::nullopt};
  };
  const auto is_there = [&](const Place& place) { return place.block < block_count; };
  // Claims the next chunk early, so that its first block can be prefetched.
  Place place = claim();
  if (!is_there(place)) return;
  if (!worker.progress.joined) Join(worker);
  segment_.kernel.enter(queries_.size());
  bool is_over = false;
  while (!is_over && is_there(place)) {
    Place next = claim();
    // A thread counts a chunk's rows when it begins to scan the chunk. Join has counted the rows of
    // the first chunk.
    if (place.participant != participant && place.end > shape_.chunk_blocks) {
      worker.progress.rows_begun += (place.end - place.block) * shape_.block_rows;
    }
    place.participant = participant;
    if (!ScanChunk(worker, place, next.block, turn)) worker.left[worker.left_count++] = place;
    is_over = worker.left_count > 0 || turn.IsOver();
    if (is_over && is_there(next)) worker.left[worker.left_count++] = next;
    place = next;
  }
  segment_.kernel.leave();
}

bool Int8Pass::CollectLeft() {
  std::vector<Place>& left = memory_.left_;
  const std::size_t taken =
      std::min(next_left_.exchange(0, std::memory_order_relaxed), left.size());
  left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(taken));
  for (Worker& worker : memory_.workers_) {
    left.insert(left.end(), worker.left.begin(),
                worker.left.begin() + static_cast<std::ptrdiff_t>(worker.left_count));
    worker.left_count = 0;
  }
  return left.empty();
}

bool Int8Pass::ScanChunk(Worker& worker, Place& place, std::size_t next_block, const Turn& turn) {
  while (place.block < place.end) {
    ScanAt(worker, place, place.block + 1 < place.end ? place.block + 1 : next_block);
    if (place.block < place.end && turn.IsOver()) return false;
  }
  return true;
}

void Int8Pass::ScanAt(Worker& worker, Place& place, std::size_t next_block) {
  const std::size_t rows = segment_.packed.RowsOfBlock(place.block);
  if (place.query == 0) {
    TightenWhereDue(worker);
    if (width_ == CodeWidth::kInt4 && worker.progress.rows_seen >= worker.progress.int4_from) {
      if (ScanInt4(worker, place.block)) {
        ++place.block;
        return;
      }
      // Try again later, when the gates have risen.
      worker.progress.int4_from = (worker.progress.rows_seen + shape_.block_rows) * 5 / 4;
    }
  }
  const Queries queries{place.query, std::min(queries_at_once_, queries_.size() - place.query)};
  const bool is_last = queries.first + queries.count == queries_.size();
  std::span<const std::uint8_t> next;
  if (is_last && next_block < shape_.block_count()) {
    next = {segment_.packed.CodesOfBlock(CodeWidth::kByte, next_block),
            segment_.packed.BytesOfRows(CodeWidth::kByte, segment_.packed.RowsOfBlock(next_block))};
  }
  ScanPiece(worker, {place.block, 0, rows}, queries, next);
  place.query += queries.count;
  if (!is_last) return;
  place.query = 0;
  ++place.block;
  worker.progress.rows_seen += rows;
}

void Int8Pass::ScanPiece(Worker& worker, const Rows& rows, const Queries& queries,
                         std::span<const std::uint8_t> next) {
  FindHits(worker, CodeWidth::kByte, rows, queries, next);
  OfferHits(worker, rows, queries);
}

bool Int8Pass::ScanInt4(Worker& worker, std::size_t block) {
  const std::size_t rows = segment_.packed.RowsOfBlock(block);
  FindHits(worker, CodeWidth::kInt4, {block, 0, rows}, {0, queries_.size()}, {});
  if (!FindInt4Candidates(worker, block)) return false;
  worker.progress.rows_seen += rows;
  worker.progress.int4_rows_seen += rows;
  ScoreInt4Candidates(worker);
  return true;
}

void Int8Pass::FindHits(Worker& worker, CodeWidth width, const Rows& rows, const Queries& queries,
                        std::span<const std::uint8_t> next) {
  SetStarts(worker, segment_.packed.block(width, rows.block), queries);
  segment_.kernel.scan(
      {.codes = segment_.packed.CodesOfBlock(width, rows.block) +
                segment_.packed.BytesOfRows(width, rows.first),
       .int4_bytes = width == CodeWidth::kInt4 ? segment_.packed.int4_bytes() : nullptr,
       .group_count = rows.count / kGroupRows,
       .code_dim = shape_.rotated_dim,
       .queries = memory_.packed_.codes(queries.first),
       .query_count = queries.count,
       .starts = worker.starts.As<std::int32_t>() + queries.first,
       .hits = &worker.hit_list,
       .next = next.data(),
       .next_bytes = next.size(),
       .scratch = worker.product.As<std::int32_t>()});
}

void Int8Pass::SetStarts(Worker& worker, const PackedRows::Block& block, const Queries& queries) {
  auto* starts = worker.starts.As<std::int32_t>();
  const double block_steps_per_unit = 1.0 / static_cast<double>(block.scale);
  for (std::size_t query = queries.first; query < queries.first + queries.count; ++query) {
    const PackedQueries::Query& packed = memory_.packed_.query(query);
    const float gate = memory_.gates_[query].load(std::memory_order_relaxed);
    const double bound = bound_(packed.norms, block.norms);
    worker.bounds[query] = bound;
    starts[query] = -certificate::LeastSumToKeep(
        gate, bound, packed.steps_per_unit * block_steps_per_unit, packed.offset);
  }
}

void Int8Pass::TightenWhereDue(Worker& worker) {
  // A gate can rise noticeably each time the number of seen rows has doubled.
  const bool seen_enough = worker.progress.rows_seen >= 2 * worker.progress.rows_when_tightened;
  if (seen_enough) worker.progress.rows_when_tightened = worker.progress.rows_seen;
  for (std::size_t query = 0; query < queries_.size(); ++query) {
    if (seen_enough || worker.candidates[query].due()) Tighten(worker, query);
  }
}

void Int8Pass::Tighten(Worker& worker, std::size_t query) {
  Candidates& candidates = worker.candidates[query];
  std::atomic<float>& gate = memory_.gates_[query];
  candidates.RaiseGate(gate.load(std::memory_order_relaxed));
  candidates.Tighten(GuessFor(worker, query), worker.scratch);
  RaiseTo(gate, candidates.gate());
}

void Int8Pass::MakeSpace(Worker& worker, std::size_t query) {
  worker.candidates[query].MakeSpace(GuessFor(worker, query),
                                     MakeRescorer(query, worker.rescored[query]), worker.scratch);
}

const Guess& Int8Pass::GuessFor(Worker& worker, std::size_t query) const {
  Int8Memory::TimedGuess& timed = worker.guesses[query];
  if (timed.rows_begun != worker.progress.rows_begun) {
    timed.rows_begun = worker.progress.rows_begun;
    const std::size_t k = Spec(query).k;
    // A thread that continues another thread's chunk counts its rows again, so the sum may exceed
    // all rows.
    const double seen = std::min(
        1.0, static_cast<double>(timed.rows_begun) / static_cast<double>(shape_.row_count));
    timed.guess = {speculative_ ? certificate::SpeculativeRank(k, seen) : k, caution_};
  }
  return timed.guess;
}

inline std::uint32_t Int8Pass::FindIndex(std::size_t query, std::size_t position) const {
  const std::uint32_t index = segment_.packed.IndexAt(position);
  if (index == PackedRows::kNoRow) return index;
  const Row row = segment_.rows.first_row + index;
  const RowMask* const mask = Spec(query).mask;
  if (mask != nullptr && !mask->Allows(row)) return PackedRows::kNoRow;
  return memory_.excluded_[query].Contains(row) ? PackedRows::kNoRow : index;
}

inline double Int8Pass::ToScore(const Worker& worker, std::size_t query, std::int32_t sum,
                                double block_scale) const {
  const PackedQueries::Query& packed = memory_.packed_.query(query);
  const auto start = worker.starts.As<const std::int32_t>()[query];
  return (static_cast<double>(sum) - start - packed.offset) * (packed.scale * block_scale);
}

void Int8Pass::OfferHits(Worker& worker, const Rows& rows, const Queries& queries) {
  const auto scale = static_cast<double>(segment_.packed.block(CodeWidth::kByte, rows.block).scale);
  const std::size_t first_position = rows.block * shape_.block_rows + rows.first;
  const HitList& hits = worker.hit_list;
  for (std::size_t i = 0; i < hits.count; ++i) {
    const std::size_t query = queries.first + QueryOf(hits.pairs[i]);
    const std::uint32_t index = FindIndex(query, first_position + RowOf(hits.pairs[i]));
    if (index == PackedRows::kNoRow) continue;
    Candidates& candidates = worker.candidates[query];
    const auto [lower, upper] =
        certificate::MakeRange(ToScore(worker, query, hits.sums[i], scale), worker.bounds[query]);
    if (candidates.full()) MakeSpace(worker, query);
    candidates.Offer({index, lower, upper});
  }
}

// Tests the hits by each row's own bound. Returns false when too many remain.
bool Int8Pass::FindInt4Candidates(Worker& worker, std::size_t block) {
  const PackedRows::Block& of_block = segment_.packed.block(CodeWidth::kInt4, block);
  const auto scale = static_cast<double>(of_block.scale);
  const std::size_t first_position = block * shape_.block_rows;
  const std::size_t candidates_max = segment_.packed.RowsOfBlock(block) / kRowsForOneCandidate;
  certificate::QuantizedNorms norms = of_block.norms;
  worker.int4_candidates.clear();
  const HitList& hits = worker.hit_list;
  for (std::size_t i = 0; i < hits.count; ++i) {
    const std::size_t query = QueryOf(hits.pairs[i]);
    const std::size_t position = first_position + RowOf(hits.pairs[i]);
    const std::uint32_t index = FindIndex(query, position);
    if (index == PackedRows::kNoRow) continue;
    norms.residual = static_cast<double>(segment_.packed.Int4Residual(position));
    const double bound = bound_(memory_.packed_.query(query).norms, norms);
    const float upper =
        certificate::MakeRange(ToScore(worker, query, hits.sums[i], scale), bound).upper;
    if (upper < memory_.gates_[query].load(std::memory_order_relaxed)) continue;
    if (worker.int4_candidates.size() == candidates_max) return false;
    worker.int4_candidates.push_back({static_cast<std::uint32_t>(query), index});
  }
  return true;
}

// Scores each candidate at once, because int4 bounds are too wide to order candidates.
void Int8Pass::ScoreInt4Candidates(Worker& worker) {
  ScoreInTurn(
      worker.int4_candidates.size(),
      [&](std::size_t i) {
        const auto [query, index] = worker.int4_candidates[i];
        MakeRescorer(query, worker.rescored[query]).Prefetch(index);
      },
      [&](std::size_t i) {
        const auto [query, index] = worker.int4_candidates[i];
        Candidates& candidates = worker.candidates[query];
        const float score = MakeRescorer(query, worker.rescored[query]).Score(index);
        if (candidates.full()) MakeSpace(worker, query);
        candidates.Offer({index, score, score});
      });
}

CodeWidth Int8Pass::width() const {
  std::size_t int4_rows = 0;
  for (const Worker& worker : memory_.workers_) int4_rows += worker.progress.int4_rows_seen;
  return 2 * int4_rows > shape_.position_count() ? CodeWidth::kInt4 : CodeWidth::kByte;
}

Rescorer Int8Pass::MakeRescorer(std::size_t query, std::uint64_t& count) const {
  return {segment_.canonical, segment_.rows, Vector(query), count};
}

bool Int8Pass::Finish(ThreadPool& pool, const Turn& turn) {
  auto finish = [&](unsigned participant) {
    Worker& worker = memory_.workers_[participant];
    finished_.Claim(turn, queries_.size(), 1, [&](std::size_t query, std::size_t) {
      auto* merged = worker.merged.As<Candidate>();
      const std::size_t count = CopyCandidates(query, merged);
      std::uint64_t rescored = 0;
      const std::span<const RankKey> best = FindBest({merged, count}, HitsWanted(query),
                                                     MakeRescorer(query, rescored), worker.scratch);
      WriteAnswer(query, best, rescored);
    });
  };
  RunJob(pool, finish, few_);
  return finished_.AreDone(queries_.size());
}

std::size_t Int8Pass::HitsWanted(std::size_t query) const {
  return std::min<std::size_t>(Spec(query).k, shape_.row_count);
}

float Int8Pass::FinalGate(std::size_t query) const {
  float gate = memory_.gates_[query].load(std::memory_order_relaxed);
  for (const Worker& each : memory_.workers_) {
    if (each.progress.joined) gate = std::max(gate, each.candidates[query].gate());
  }
  return gate;
}

std::size_t Int8Pass::CandidateCount(std::size_t query) const {
  std::size_t count = 0;
  for (const Worker& each : memory_.workers_) {
    if (each.progress.joined) count += each.candidates[query].all().size();
  }
  return count;
}

// Each row is a candidate of one thread.
std::size_t Int8Pass::CandidatesMax(std::size_t query) const {
  const std::size_t workers = memory_.workers_.size();
  return std::min(shape_.row_count,
                  workers * ComputeCapacity(Spec(query), shape_.row_count, workers));
}

std::size_t Int8Pass::CopyCandidates(std::size_t query, Candidate* to) const {
  const float gate = FinalGate(query);
  std::size_t count = 0;
  for (const Worker& each : memory_.workers_) {
    if (!each.progress.joined) continue;
    for (const Candidate& candidate : each.candidates[query].all()) {
      if (candidate.upper >= gate) to[count++] = candidate;
    }
  }
  return count;
}

void Int8Pass::WriteAnswer(std::size_t query, std::span<const RankKey> best,
                           std::uint64_t rescored) {
  const QuerySpec& spec = Spec(query);
  // Every dropped row has a canonical score below the gate, so none is lost when k rows reach it.
  const float gate = FinalGate(query);
  memory_.certain_[query] = gate <= spec.score_threshold || (best.size() == HitsWanted(query) &&
                                                             best.back().score() >= gate)
                                ? 1
                                : 0;
  while (!best.empty() && best.back().score() < spec.score_threshold)
    best = best.first(best.size() - 1);

  const std::uint32_t place = queries_[query];
  const std::span<Hit> hits = result_.Buffer(place);
  for (std::size_t i = 0; i < best.size(); ++i) hits[i] = {best[i].row(), best[i].score()};
  result_.SetCount(place, best.size());
  for (const Worker& each : memory_.workers_) {
    if (each.progress.joined) rescored += each.rescored[query];
  }
  QueryCost cost =
      result_.Cost(place);  // cost of the first search, if this search repeats a wrong guess
  cost += {.rows_scanned = shape_.row_count,
           .rows_rescored = rescored,
           .rescans = speculative_ ? 0U : 1U};
  result_.SetCost(place, cost);
}

}  // namespace simile::backend::cpu
