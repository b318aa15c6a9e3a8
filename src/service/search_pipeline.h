#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "engine/queue/executor.h"
#include "engine/snapshots/snapshot_store.h"
#include "observe/metrics.h"
#include "service/call.h"
#include "service/response_builder.h"
#include "service/validate_search.h"
#include "simile/limits.h"

namespace simile::v1 {
class Receipt;
enum ScoreKind : int;
}  // namespace simile::v1

namespace simile::service {

// The request path of Search and Recommend: pinned snapshot -> resolved vectors and rows ->
// executor -> response. The two differ only in the messages they read and write. Owned by the RPC
// services; borrows its parts. Safe to use from any thread.
class SearchPipeline {
 public:
  struct Parts {
    const Clock& clock;
    engine::SnapshotStore& store;
    engine::Executor& executor;
    observe::Metrics& metrics;
    const Limits& limits;
  };
  explicit SearchPipeline(const Parts& parts);

  // The answer to one query, without the first `offset` hits or groups.
  struct ResultPage {
    std::span<const Hit> hits;
    std::span<const engine::HitGroup> groups;
    std::uint32_t offset = 0;  // rows or groups skipped
    v1::ScoreKind score_kind{};
    std::optional<std::uint64_t> rows_passing;   // the filters; nothing without one
    std::optional<query::ColdStart> cold_start;  // how a cold start ordered the rows
  };
  // What a response is built from.
  struct Answer {
    const engine::Snapshot& snapshot;
    const ResponseBuilder& builder;
    const std::vector<ResultPage>& pages;  // [queries]
    const RowMask* existing;               // the items that exist for the call; null for all
    std::string next_page_token;           // empty: there is no next page, or none was asked for
  };
  using Build = std::function<void(const Answer&)>;

  // Finishes the call: at once with an error, or later from the executor's completion thread, which
  // checks that the rows fit, calls `build` and fills `receipt` (part of the response).
  //   path  the request's repeated field, for messages: "queries", "user_ids"
  void Run(Call& call, const std::string& collection, ValidSearch search, std::string_view path,
           v1::Receipt& receipt, Build build) const;

  const Limits& limits() const { return parts_.limits; }

 private:
  struct Pending;
  absl::StatusOr<engine::SnapshotPtr> Pin(const std::string& collection,
                                          const ValidSearch& search) const;
  absl::Status Submit(Call& call, const std::string& collection, std::string_view path,
                      std::shared_ptr<Pending> pending) const;
  absl::Status Complete(Call& call, const engine::SearchAnswer& answer, Pending& pending) const;
  // Empty when there is no next page; otherwise leases the snapshot for the call that asks for it.
  std::string NextPageToken(const Pending& pending) const;
  Clock::TimePoint Deadline(const Call& call) const;
  void CountRefusal(const absl::Status& status) const;

  const Parts parts_;
  const std::string reply_remedy_;  // what a caller can do when its reply is too large
};

}  // namespace simile::service
