#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "simile/matrix_view.h"
#include "simile/query.h"
#include "simile/rank_key.h"
#include "simile/served_by.h"

namespace simile {

// One answer row: the caller's row number and its canonical score (never -0).
struct Hit {
  Row row = 0;
  float score = 0;

  friend bool operator==(const Hit&, const Hit&) = default;
};

inline RankKey KeyOf(const Hit& hit) { return {hit.score, hit.row}; }

// What one query cost. Goes into the receipt.
struct QueryCost {
  std::uint64_t rows_scanned = 0;   // rows whose score, cheap or canonical, was formed
  std::uint64_t rows_rescored = 0;  // rows whose canonical score was formed after a cheap one
  std::uint64_t rescans = 0;        // repeated searches because a guessed gate was wrong
  std::uint64_t rounds = 0;         // searches that the answer needed after the first

  QueryCost& operator+=(const QueryCost& other) {
    rows_scanned += other.rows_scanned;
    rows_rescored += other.rows_rescored;
    rescans += other.rescans;
    rounds += other.rounds;
    return *this;
  }
};

// The answers to a batch: for every query its hits, best first by RankKey. Reused from batch to
// batch by the thread that owns it, so that a warm search allocates nothing.
class SearchResult {
 public:
  SearchResult() = default;
  // Not copyable: hits point into this result's buffer.
  SearchResult(SearchResult&&) noexcept = default;
  SearchResult& operator=(SearchResult&&) noexcept = default;

  // Empties the result and makes space for the hits that each query can have in a segment of
  // row_count rows.
  void Reset(std::span<const QuerySpec> specs, std::size_t row_count) {
    ResetWithoutSpace(specs, row_count);
    MakeSpace();
  }
  // The same for `batch` queries of up to `hits_max` hits each.
  void Reset(std::size_t batch, std::size_t hits_max) {
    Clear(batch);
    for (std::size_t query = 1; query <= batch; ++query) ends_.push_back(query * hits_max);
    MakeSpace();
  }
  // As Reset, without the buffer. A backend that lends hits calls MakeSpace before its first
  // Buffer.
  void ResetWithoutSpace(std::span<const QuerySpec> specs, std::size_t row_count) {
    Clear(specs.size());
    for (const QuerySpec& spec : specs) {
      ends_.push_back(ends_.back() + std::min<std::size_t>(spec.k, row_count));
    }
  }
  // Makes the buffer large enough; replaces a buffer that is far too large. Repeating it does
  // nothing.
  void MakeSpace() {
    const std::size_t wanted = ends_.back();
    if (hits_.size() > std::max(kHitsKept, 4 * wanted)) hits_ = std::vector<Hit>();
    if (hits_.size() < wanted) hits_.resize(wanted);
  }

  std::size_t batch() const { return hits_of_.size(); }
  std::span<const Hit> Hits(std::size_t query) const {
    assert(query < batch());
    return hits_of_[query];
  }
  const QueryCost& Cost(std::size_t query) const { return costs_[query]; }

  // The whole buffer of a query, for a backend to write its hits into; SetCount says how many it
  // wrote. Different queries may be written from different threads.
  std::span<Hit> Buffer(std::size_t query) {
    assert(query < batch());
    return {hits_.data() + ends_[query], ends_[query + 1] - ends_[query]};
  }
  void SetCount(std::size_t query, std::size_t count) {
    assert(count <= ends_[query + 1] - ends_[query]);
    hits_of_[query] = {hits_.data() + ends_[query], count};
  }
  // Uses hits in the backend's memory instead of the buffer. They stay valid until Release, Reset
  // or the end of this result, because Keep holds the memory's owner until then.
  void SetLent(std::size_t query, std::span<const Hit> hits) { hits_of_[query] = hits; }
  void Keep(std::shared_ptr<const void> owner) { owners_.push_back(std::move(owner)); }
  // Call after the last read. If any hits were lent, empties every query's hits.
  void Release() {
    if (owners_.empty()) return;
    std::ranges::fill(hits_of_, std::span<const Hit>());
    owners_.clear();
  }
  void SetCost(std::size_t query, const QueryCost& cost) { costs_[query] = cost; }

  // The engine that answered the query: "int8-amx", "int4-avx2", "scan-avx512", "gather-avx512".
  // The name lives as long as the backend; "" when there was nothing to search.
  const char* Engine(std::size_t query) const { return engines_[query]; }
  void SetEngine(std::size_t query, const char* name) { engines_[query] = name; }

  // The bytes of the hits' buffer, which is kept for the next batch.
  std::size_t buffer_bytes() const { return hits_.capacity() * sizeof(Hit); }

  // The fallback backend that answered the batch; null when the called backend did.
  const FallbackBackend& fallback() const { return fallback_; }
  void SetFallback(FallbackBackend fallback) { fallback_ = std::move(fallback); }

 private:
  // A buffer of up to 1 MiB is always kept for the next batch.
  static constexpr std::size_t kHitsKept = (1U << 20) / sizeof(Hit);

  void Clear(std::size_t batch) {
    hits_of_.assign(batch, {});
    owners_.clear();
    ends_.assign(1, 0);
    ends_.reserve(batch + 1);
    costs_.assign(batch, QueryCost{});
    engines_.assign(batch, "");
    fallback_ = nullptr;
  }

  std::vector<Hit> hits_;
  std::vector<std::size_t> ends_;  // [batch + 1] begin of each query's buffer; last: the end
  std::vector<std::span<const Hit>> hits_of_;        // [batch]
  std::vector<std::shared_ptr<const void>> owners_;  // of lent hits
  std::vector<QueryCost> costs_;
  std::vector<const char*> engines_;
  FallbackBackend fallback_;
};

}  // namespace simile
