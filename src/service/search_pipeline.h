#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "base/long_work.h"
#include "engine/query/other_items.h"
#include "engine/query/resolve.h"
#include "engine/queue/executor.h"
#include "observe/metrics.h"
#include "service/access/served_snapshots.h"
#include "service/calls/call.h"
#include "service/calls/resolve_workers.h"
#include "service/replies/replies.h"
#include "service/requests/validate_search.h"
#include "simile/limits.h"

namespace simile::service {

// The request path of Search, Recommend, Explain and each message of Export: pinned snapshot ->
// resolved vectors and rows -> executor -> reply. Owned by the RPC services; borrows its parts.
// Safe to use from any thread.
class SearchPipeline {
 public:
  struct Parts {
    const Clock& clock;
    const ServedSnapshots& snapshots;
    engine::Executor& executor;
    observe::Metrics& metrics;
    const Limits& limits;
    ResolveWorkers& workers;
  };
  explicit SearchPipeline(const Parts& parts);

  // The method that is answered. For users the response also says who they are and how many items
  // they have seen.
  enum class Method : std::uint8_t { kSearch, kRecommend };

  // Finishes the call: at once with an error, or later when the executor completes its task.
  // Resolving that takes too long for an event loop is done by a worker.
  void Run(Call& call, PermittedCollection collection, ValidSearch search, Method method) const;

  // The tasks of calls that have arrived at the calling thread, an event loop. Executor::RunHere
  // queues them.
  static engine::TaskList& arrivals();

  const Limits& limits() const { return parts_.limits; }

 private:
  struct Pending;
  absl::StatusOr<PermittedSnapshot> Pin(const PermittedCollection& collection,
                                        const ValidSearch& search) const;
  // Pins another collection whose items the queries name: the content that the page token names, if
  // there is a token.
  absl::StatusOr<PermittedSnapshot> PinItemCollection(Call& call, const ValidSearch& search,
                                                      std::size_t index) const;
  // Pins all of these collections. A collection that the call may not use, or that has no content,
  // has its error instead.
  // Errors: those of content that the page token names.
  absl::StatusOr<engine::OtherCollections> PinItemCollections(Call& call, Pending& pending) const;
  // Resolves the queries and hands the task to the executor. False when that takes longer than an
  // event loop may spend: then it is called again on a worker.
  absl::StatusOr<bool> Submit(Call& call, const std::shared_ptr<Pending>& pending) const;
  // Sends what the executor has found, or its error.
  void SendAnswer(Call& call, const absl::StatusOr<engine::SearchAnswer>& answer,
                  Pending& pending) const;
  // Decides what each row of the answer has.
  // Errors: UNKNOWN_PAYLOAD_FIELD; PERMISSION_DENIED; those of `work`.
  static absl::Status ShapeRows(base::LongWork& work, Pending& pending);
  // Checks the items to explain, and makes the task find the places of their rows.
  // Errors: engine::CheckItems'.
  static absl::Status CheckExplained(const engine::CallOptions& options, base::LongWork& work,
                                     engine::SearchTask& task, Pending& pending);
  // Counts the refusal and sends it.
  void Refuse(Call& call, const absl::Status& status) const;
  // Fills the pages from the answer, and adds the notes that need the answer.
  void FillPages(const engine::SearchAnswer& answer, Pending& pending) const;
  ReceiptParts MakeReceiptParts(const Call& call, const engine::SearchAnswer& answer,
                                const Pending& pending) const;
  // Errors: those of ExplainItems; REPLY_TOO_LARGE.
  absl::StatusOr<ExplainReply> BuildExplanation(const Call& call,
                                                const engine::SearchAnswer& answer,
                                                Pending& pending) const;
  // Errors: REPLY_TOO_LARGE; then the call counts as not answered and leases nothing.
  absl::StatusOr<SearchReply> BuildReply(const Call& call, const engine::SearchAnswer& answer,
                                         Pending& pending) const;
  // Encodes the reply. Leaves the notes out if the reply would be too large with them, and says so
  // in one note if that fits. A reply that is too large without notes keeps its notes.
  SearchReply EncodeReply(const Call& call, SearchReply::Parts parts, Pending& pending) const;
  // The reply to a call in which no query can be answered.
  absl::StatusOr<SearchReply> BuildReplyWithoutSearch(const Call& call, Pending& pending) const;
  // Empty when there is no next page.
  std::string NextPageToken(const Pending& pending) const;
  Clock::TimePoint Deadline(const Call& call) const;
  // The status; a deadline error gets the name of the limit when a limit and not the caller set the
  // deadline.
  absl::Status WithDeadline(const absl::Status& status, const Call& call) const;

  const Parts parts_;
  const std::string reply_remedy_;  // what a caller can do when its reply is too large
};

}  // namespace simile::service
