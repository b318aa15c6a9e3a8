#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <absl/status/status.h>

#include "engine/executor.h"
#include "engine/snapshot_store.h"
#include "observe/metrics.h"
#include "service/call.h"
#include "service/response_builder.h"
#include "service/validate_search.h"
#include "simile/limits.h"

namespace simile::v1 {
class Receipt;
}

namespace simile::service {

// The road every query takes: pinned snapshot -> resolved vectors and rows -> executor -> answer.
// Search and Recommend differ in what they read and write at its ends. Owned by the RPC services;
// what it refers to is wiring's and outlives it. Safe to use from any thread.
class SearchRoad {
 public:
  struct Parts {
    const Clock& clock;
    engine::SnapshotStore& store;
    engine::Executor& executor;
    observe::Metrics& metrics;
    const Limits& limits;
  };
  explicit SearchRoad(const Parts& parts) : parts_(parts) {}

  // What one query is answered with, offset already skipped.
  struct QueryResult {
    std::span<const Hit> hits;
    std::span<const engine::HitGroup> groups;
    std::uint32_t offset = 0;                   // rows or groups skipped
    std::optional<std::uint64_t> rows_passing;  // the filter; nothing without one
    std::string fallback_order;                 // of a user without a profile; else empty
  };
  // What the end of the road is given to build the response from.
  struct Answer {
    const engine::Snapshot& snapshot;
    const ResponseBuilder& builder;
    const std::vector<QueryResult>& results;  // [queries]
    std::string next_page_token;              // empty: there is no next page, or none was asked for
  };
  using Build = std::function<void(const Answer&)>;

  // Answers the call, now with an error or later from the executor's completion thread: checks that
  // the answer fits, calls `build`, fills `receipt` (part of the response) and finishes.
  //   path  what messages call a query: "queries", "user_ids"
  void Run(Call& call, const std::string& collection, ValidSearch search, std::string_view path,
           v1::Receipt& receipt, Build build) const;

  const Limits& limits() const { return parts_.limits; }

 private:
  struct Pending;
  absl::StatusOr<engine::SnapshotPtr> Pin(const std::string& collection,
                                          const Paging& paging) const;
  absl::Status Submit(Call& call, const std::string& collection, std::string_view path,
                      std::shared_ptr<Pending> pending) const;
  absl::Status Complete(Call& call, const engine::SearchAnswer& answer, Pending& pending) const;
  // Keeps the snapshot for whoever turns the page. Empty when there is no next page.
  std::string NextPageToken(const Pending& pending) const;
  Clock::TimePoint Deadline(const Call& call) const;
  void CountRefusal(const absl::Status& status) const;

  const Parts parts_;
};

}  // namespace simile::service
