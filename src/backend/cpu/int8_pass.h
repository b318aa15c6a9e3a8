#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/cpu/candidates.h"
#include "backend/cpu/int8_kernel.h"
#include "backend/cpu/packed_codes.h"
#include "backend/cpu/thread_pool.h"
#include "base/memory_pages.h"
#include "certificate/canonical_score.h"
#include "simile/matrix_view.h"
#include "simile/segment.h"

namespace simile::backend::cpu {

// Tests whether a query excludes a row. The test runs for every hit. A binary search of 200
// excluded rows takes eight steps; the bit filter before it usually takes one, and only rows whose
// bit is set are searched for. Reset before use; afterwards any thread may read.
class ExcludedRows {
 public:
  //   rows  ascending; borrowed
  void Reset(std::span<const Row> rows) {
    rows_ = rows;
    if (rows.size() < kRowsMin) return;
    bits_.fill(0);
    for (const Row row : rows) bits_[ToWord(row)] |= ToBit(row);
  }

  bool Contains(Row row) const {
    if (rows_.empty()) return false;
    if (rows_.size() >= kRowsMin && (bits_[ToWord(row)] & ToBit(row)) == 0) return false;
    return std::binary_search(rows_.begin(), rows_.end(), row);
  }

 private:
  static constexpr std::size_t kRowsMin =
      4;  // with fewer rows the search alone is as fast (estimated)
  static constexpr std::size_t kBits = std::size_t{1} << 14;

  static std::size_t ToWord(Row row) { return row % kBits / 64; }
  static std::uint64_t ToBit(Row row) { return std::uint64_t{1} << (row % 64); }

  std::span<const Row> rows_;
  std::array<std::uint64_t, kBits / 64> bits_;  // not set below kRowsMin rows
};

// A segment, its packed rows, and the kernels to search it with.
struct Int8Segment {
  const SegmentRows& rows;
  const PackedRows& packed;
  const Int8Kernel& kernel;
  const certificate::CanonicalKernel& canonical;
  std::size_t small_pass_bytes;  // as in Int8Options
};

// The buffers that passes reuse, so that a warm search allocates nothing. Only the candidates'
// buffers become smaller again. The other buffers are small, or only small parts of them are
// written to.
class Int8Memory {
 public:
  explicit Int8Memory(unsigned threads) : workers_(threads) {}

  // The bytes of the buffers that grow with queries and their hits.
  std::uint64_t bytes() const {
    std::uint64_t bytes = 0;
    for (const Worker& worker : workers_) {
      bytes += worker.hits.bytes() + worker.buffers.bytes() + worker.merged.bytes();
    }
    return bytes;
  }

 private:
  friend class Int8Pass;

  struct Int4Candidate {
    std::uint32_t query;
    std::uint32_t index;
  };

  // The progress of one thread in one pass; reset for each pass.
  struct Progress {
    bool joined = false;
    std::size_t rows_seen = 0;
    // Rows of the chunks entered so far. Chunks are random samples of all rows; the blocks of a
    // chunk are not, because a chunk is sorted by scale.
    std::size_t rows_begun = 0;
    std::size_t rows_when_tightened = 0;
    std::size_t int4_rows_seen = 0;  // of rows_seen
    std::size_t int4_from = 0;       // rows to see before int4 is tried
  };

  // The place of the scan in a chunk: the next queries of the next block.
  struct Place {
    std::size_t block;
    std::size_t end;  // of the chunk
    std::size_t query;
    std::optional<unsigned> participant;  // the thread that entered the chunk last
  };

  // A query's guess, and the rows_begun that it was computed for.
  struct TimedGuess {
    std::size_t rows_begun = 0;  // 0: not computed yet
    Guess guess;
  };

  // The buffers that one thread writes to.
  struct alignas(64) Worker {
    Progress progress;
    std::array<Place, 2>
        left{};  // left at the turn's end: in the current chunk, and in the chunk claimed next
    std::size_t left_count = 0;
    PackedQueries::Scratch packing;
    base::PageBuffer product;                    // Int8Kernel's scratch
    base::PageBuffer hits;                       // a HitList's arrays, for one piece
    HitList hit_list{};                          // points into `hits`
    std::vector<Int4Candidate> int4_candidates;  // of one block
    base::PageBuffer starts;                     // std::int32_t [query], for the current piece
    std::vector<double> bounds;                  // [query]  for the current block
    base::PageBuffer buffers;             // the candidates' buffers, one query after the other
    std::vector<Candidates> candidates;   // [query]
    std::vector<TimedGuess> guesses;      // [query]
    std::vector<std::uint64_t> rescored;  // [query]
    CandidateScratch scratch;             // for the candidates of one query, of all threads
    base::PageBuffer merged;              // Candidate, of one query and all threads
  };

  std::vector<Worker> workers_;
  PackedQueries packed_;
  std::unique_ptr<std::atomic<float>[]> gates_;
  std::size_t gates_size_ = 0;
  std::vector<char> certain_;           // [query]
  std::vector<ExcludedRows> excluded_;  // [query]
  std::vector<Place> left_;             // left by earlier turns, of all workers
};

// One pass over the packed rows for as many queries as QueriesOfInt8Pass allows: finds the
// candidates (docs/design/cpu-engine.md), ranks them by canonical score and proves the answers.
// The end is either Finish, query by query, or BatchFinish, which scores the candidates of many
// queries row by row. May be paused between two pieces of work.
class Int8Pass {
 public:
  //   queries      indexes of the queries in the batch, and of their answers in result
  //   speculative  whether gates may be guesses, which WriteAnswer verifies; otherwise gates are
  //                proven
  //   width        the codes to read. Bytes are read instead of int4 while the scores of int4's
  //                extra candidates cost more than reading bytes.
  // REQUIRES: result has been Reset for the whole batch. Throws std::bad_alloc.
  Int8Pass(const Int8Segment& segment, const SearchBatch& batch,
           std::span<const std::uint32_t> queries, bool speculative, CodeWidth width,
           Int8Memory& memory, SearchResult& result);
  // Frees candidates' buffers that are larger than a usual pass needs.
  ~Int8Pass();
  Int8Pass(const Int8Pass&) = delete;
  Int8Pass& operator=(const Int8Pass&) = delete;

  // Packs and scans until the turn is over. Wakes no thread of the pool for a small pass. Returns
  // whether all rows are scanned. Does not throw.
  bool Scan(ThreadPool& pool, const Turn& turn);
  // Scores, ranks and proves, query by query, until the turn is over. Returns whether all are
  // answered. Does not throw.
  bool Finish(ThreadPool& pool, const Turn& turn);

  // The steps of Finish, for BatchFinish; different threads may take them for different queries.
  //   query  0 .. queries().size() - 1
  // An upper limit of the number that CopyCandidates copies after this scan.
  std::size_t CandidateCount(std::size_t query) const;
  // An upper limit after any scan for the query, to reserve buffers with.
  std::size_t CandidatesMax(std::size_t query) const;
  // Copies the candidates that can be among the best. Returns their number.
  //   to  [CandidateCount(query)]
  std::size_t CopyCandidates(std::size_t query, Candidate* to) const;
  // k, or the number of the segment's rows if smaller.
  std::size_t HitsWanted(std::size_t query) const;
  const float* Vector(std::size_t query) const { return batch_.queries.PaddedRow(queries_[query]); }
  // Writes the answer and whether it is proven.
  //   best      the best HitsWanted(query) candidates, best first; all candidates if there are
  //             fewer
  //   rescored  how many candidates were scored after the scan
  void WriteAnswer(std::size_t query, std::span<const RankKey> best, std::uint64_t rescored);

  std::span<const std::uint32_t> queries() const { return queries_; }
  // Whether the answer of queries()[i] is proven; always true when not speculative.
  bool certain(std::size_t i) const { return memory_.certain_[i] != 0; }
  // The width of the codes that most rows were read by.
  CodeWidth width() const;

 private:
  using Worker = Int8Memory::Worker;
  using Place = Int8Memory::Place;

  // Rows of one block, and queries of the pass.
  struct Rows {
    std::size_t block;
    std::size_t first;
    std::size_t count;
  };
  struct Queries {
    std::size_t first;
    std::size_t count;
  };

  // Packs each query and scans the first block for it, so that all threads start the other blocks
  // with a gate.
  void BeginQueries(unsigned participant, const Turn& turn);
  void ScanChunks(unsigned participant, const Turn& turn);
  // Lists the places that earlier turns left. Returns whether there are none.
  bool CollectLeft();

  void Join(Worker& worker) const;
  void ScanFirstBlock(Worker& worker, const Queries& queries);
  // Continues until the end of the chunk or of the turn. Returns whether the chunk is done.
  //   next_block  the block that will be scanned after the chunk
  bool ScanChunk(Worker& worker, Place& place, std::size_t next_block, const Turn& turn);
  // Scans a block for some of the queries, and advances the place.
  void ScanAt(Worker& worker, Place& place, std::size_t next_block);
  // Scans a piece in bytes.
  void ScanPiece(Worker& worker, const Rows& rows, const Queries& queries,
                 std::span<const std::uint8_t> next);
  // Scans a block in int4. Returns false, and offers no candidate, when there are too many.
  bool ScanInt4(Worker& worker, std::size_t block);
  // Writes the hits to the worker's list. Rows and queries are numbered from the first row and
  // query of the piece.
  void FindHits(Worker& worker, CodeWidth width, const Rows& rows, const Queries& queries,
                std::span<const std::uint8_t> next);
  void SetStarts(Worker& worker, const PackedRows::Block& block, const Queries& queries);
  void OfferHits(Worker& worker, const Rows& rows, const Queries& queries);
  bool FindInt4Candidates(Worker& worker, std::size_t block);
  void ScoreInt4Candidates(Worker& worker);
  // The segment's row at a position; kNoRow when there is none, or when the query may not return
  // it.
  std::uint32_t FindIndex(std::size_t query, std::size_t position) const;
  //   sum  of a hit
  double ToScore(const Worker& worker, std::size_t query, std::int32_t sum,
                 double block_scale) const;
  void TightenWhereDue(Worker& worker);
  void Tighten(Worker& worker, std::size_t query);
  void MakeSpace(Worker& worker, std::size_t query);
  const Guess& GuessFor(Worker& worker, std::size_t query) const;
  float FinalGate(std::size_t query) const;
  // Runs a job on the calling thread alone, or on all threads of the pool.
  template <class Job>
  static void RunJob(ThreadPool& pool, Job& job, bool alone) {
    if (alone) {
      job(0);
    } else {
      pool.Run(job);
    }
  }

  const QuerySpec& Spec(std::size_t query) const { return batch_.specs[queries_[query]]; }
  //   count  incremented by every score
  Rescorer MakeRescorer(std::size_t query, std::uint64_t& count) const;

  const Int8Segment segment_;
  const PackedShape& shape_;
  const certificate::ScoreBound bound_;
  const SearchBatch batch_;
  const std::span<const std::uint32_t> queries_;
  const bool speculative_;
  const CodeWidth width_;
  const float caution_;
  const bool small_;  // IsSmallPass
  const bool few_;    // few queries, or a small pass
  const std::size_t queries_at_once_;
  Int8Memory& memory_;
  SearchResult& result_;
  StepsDone steps_;
  PartsOfJob begun_;
  std::atomic<std::size_t> next_left_{0};
  std::atomic<std::size_t> next_chunk_{0};
  PartsOfJob finished_;
};

// Whether the calling thread runs a pass alone. Pure.
bool IsSmallPass(const PackedShape& shape, std::size_t query_count, std::size_t small_pass_bytes);

// The number of these queries, from the first on, that fit into one pass. Pure.
std::size_t QueriesOfInt8Pass(std::span<const QuerySpec> specs,
                              std::span<const std::uint32_t> queries, std::size_t row_count,
                              unsigned threads);

}  // namespace simile::backend::cpu
