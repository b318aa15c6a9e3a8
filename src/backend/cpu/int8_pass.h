#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/cpu/excluded_rows.h"
#include "backend/cpu/int8_kernel.h"
#include "backend/cpu/packed_queries.h"
#include "backend/cpu/packed_rows.h"
#include "backend/cpu/survivors.h"
#include "backend/cpu/thread_pool.h"
#include "certificate/canonical_score.h"
#include "data/page_buffer.h"
#include "simile/segment.h"

namespace simile::backend::cpu {

// A segment with its packed rows, and how to search it.
struct Int8Segment {
  const SegmentRows& rows;
  const PackedRows& packed;
  const Int8Kernel& kernel;
  const certificate::CanonicalKernel& canonical;
};

// What the passes of a backend keep from one to the next; only grows, so that a warm search
// allocates nothing.
class Int8Memory {
 public:
  explicit Int8Memory(unsigned threads) : workers_(threads) {}

 private:
  friend class Int8Pass;

  struct Candidate {
    std::uint32_t query;
    std::uint32_t index;
  };

  // How far one thread is in one pass; starts afresh with each.
  struct Progress {
    bool joined = false;
    std::size_t rows_seen = 0;
    // Of the chunks entered so far: a random share of all rows, as the blocks of one chunk, which
    // are sorted by scale, are not.
    std::size_t rows_begun = 0;
    std::size_t rows_when_tightened = 0;
    std::size_t nibble_rows_seen = 0;  // of rows_seen
    std::size_t nibbles_from = 0;      // rows to see before nibbles are worth a try
  };

  // How a query's gate is set, and after how many rows that was worked out.
  struct TimedGuess {
    std::size_t rows_begun = 0;  // 0: not yet
    Guess guess;
  };

  // One thread's own.
  struct alignas(64) Worker {
    Progress progress;
    PackedQueries::Scratch packing;
    data::PageBuffer product;             // Int8Kernel's scratch
    data::PageBuffer hits;                // RawHit, one piece's
    std::vector<Candidate> found;         // by nibbles in one block
    data::PageBuffer starts;              // std::int32_t [query], of the piece at hand
    std::vector<double> bounds;           // [query]  of the block at hand
    data::PageBuffer room;                // the survivors' buffers, one after the other
    std::vector<Survivors> survivors;     // [query]
    std::vector<TimedGuess> guesses;      // [query]
    std::vector<std::uint64_t> rescored;  // [query]
    data::PageBuffer merged;              // Survivor, of one query, of all threads
  };

  std::vector<Worker> workers_;
  PackedQueries packed_;
  std::unique_ptr<std::atomic<float>[]> gates_;
  std::size_t gates_size_ = 0;
  std::vector<char> certain_;           // [query]
  std::vector<ExcludedRows> excluded_;  // [query]
};

// The first stage and the last: one pass over the packed rows for as many queries as
// QueriesOfInt8Pass allows finds the candidates, canonical scores decide. docs/design/cpu-engine.md
// walks through it. Lives for one call.
class Int8Pass {
 public:
  //   queries      which of the batch; their answers go to the same places of result
  //   speculative  whether gates may be guesses that the end verifies; else they are proven from
  //                the start
  //   width        of the codes to read. Bytes are read in place of nibbles as long as these find
  //                so many candidates that scoring them would cost more.
  // REQUIRES: result has been Reset for the whole batch. Throws std::bad_alloc.
  Int8Pass(const Int8Segment& segment, const SearchBatch& batch,
           std::span<const std::uint32_t> queries, bool speculative, CodeWidth width,
           Int8Memory& memory, SearchResult& result);

  // Packs, scans, settles. Does not throw.
  void Run(ThreadPool& pool);

  std::span<const std::uint32_t> queries() const { return queries_; }
  // Whether the answer of queries()[i] is proven. It always is when nothing was guessed.
  bool certain(std::size_t i) const { return memory_.certain_[i] != 0; }
  // Of the codes of most rows.
  CodeWidth width() const;

 private:
  using Worker = Int8Memory::Worker;

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

  // Packs each query and holds it against the first block, so that all threads have a gate for it
  // when they come to the others.
  void BeginQueries(unsigned participant);
  void ScanChunks(unsigned participant);
  void FinishQueries(unsigned participant);

  void Join(Worker& worker) const;
  void ScanFirstBlock(Worker& worker, const Queries& queries);
  void ScanBlock(Worker& worker, std::size_t block, std::size_t next_block);
  // By bytes.
  void ScanPiece(Worker& worker, const Rows& rows, const Queries& queries,
                 std::span<const std::uint8_t> next);
  // Returns false, and has done nothing, when there are too many candidates.
  bool ScanNibbles(Worker& worker, std::size_t block);
  // Leaves the hits in the worker, counted from the first of these rows and queries, and returns
  // their number.
  std::size_t Hits(Worker& worker, CodeWidth width, const Rows& rows, const Queries& queries,
                   std::span<const std::uint8_t> next);
  void SetStarts(Worker& worker, const PackedRows::Block& block, const Queries& queries);
  void TakeHits(Worker& worker, const Rows& rows, const Queries& queries, std::size_t hit_count);
  bool FindCandidates(Worker& worker, std::size_t block, std::size_t hit_count);
  void ScoreCandidates(Worker& worker);
  // The segment's row at a position, or kNoRow where there is none or the query does not want it.
  std::uint32_t IndexOf(std::size_t query, std::size_t position) const;
  //   sum  of a hit
  double ScoreOf(const Worker& worker, std::size_t query, std::int32_t sum,
                 double block_scale) const;
  void TightenWhereDue(Worker& worker);
  void Tighten(Worker& worker, std::size_t query);
  const Guess& GuessFor(Worker& worker, std::size_t query) const;
  void FinishQuery(Worker& worker, std::size_t query);

  const QuerySpec& Spec(std::size_t query) const { return batch_.specs[queries_[query]]; }
  //   count  raised by every score
  Rescorer RescorerOf(std::size_t query, std::uint64_t& count) const;

  const Int8Segment segment_;
  const PackedShape& shape_;
  const certificate::ScoreBound bound_;
  const SearchBatch& batch_;
  const std::span<const std::uint32_t> queries_;
  const bool speculative_;
  const CodeWidth width_;
  const float caution_;
  Int8Memory& memory_;
  SearchResult& result_;
  std::atomic<std::size_t> next_begun_{0};
  std::atomic<std::size_t> next_chunk_{0};
  std::atomic<std::size_t> next_finished_{0};
};

// How many of the first of these queries fit one pass. Pure.
std::size_t QueriesOfInt8Pass(std::span<const QuerySpec> specs,
                              std::span<const std::uint32_t> queries, std::size_t row_count,
                              unsigned threads);

}  // namespace simile::backend::cpu
