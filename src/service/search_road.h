#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
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
    const engine::SnapshotStore& store;
    engine::Executor& executor;
    observe::Metrics& metrics;
    const Limits& limits;
  };
  explicit SearchRoad(const Parts& parts) : parts_(parts) {}

  // What the end of the road is given to build the response from.
  struct Answer {
    const engine::Snapshot& snapshot;
    const ResponseBuilder& builder;
    // [queries]: the hits to show, offset already skipped
    const std::vector<std::span<const Hit>>& hits;
    const std::vector<recommend::QueryRequest>& queries;
    // [queries]: how many rows pass the filter; nothing where there is none
    const std::vector<std::optional<std::uint64_t>>& rows_passing;
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
  absl::Status Submit(Call& call, const std::string& collection, std::string_view path,
                      std::shared_ptr<Pending> pending) const;
  absl::Status Complete(Call& call, const Pending& pending,
                        const engine::SearchAnswer& answer) const;
  Clock::TimePoint Deadline(const Call& call) const;
  void CountRefusal(const absl::Status& status) const;

  const Parts parts_;
};

}  // namespace simile::service
