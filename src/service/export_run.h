#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "base/long_work.h"
#include "service/access/served_snapshots.h"
#include "service/calls/call.h"
#include "service/replies/wire_writer.h"
#include "service/search_pipeline.h"
#include "simile/limits.h"
#include "simile/v1/search.pb.h"

namespace simile::service {

// How far an Export is.
struct ExportProgress {
  Row next_row = 0;  // of the items or users: where the next part begins
  std::uint64_t exported_count = 0;
};

// The state of an Export: the request, and the sources that are answered. Each part is a Search or
// a Recommend by some of the sources. Borrows the snapshots. Used by one thread at a time.
class ExportRun {
 public:
  ExportRun(const ServedSnapshots& snapshots, const Limits& limits)
      : snapshots_(snapshots), limits_(limits) {}

  // Takes the request, counts the sources and finds the first source after the cursor.
  // Errors: INVALID_FIELD; INVALID_FILTER; INVALID_PAGE_TOKEN for the cursor; PAGE_SNAPSHOT_GONE;
  //         those of ServedSnapshots::Pin; SNAPSHOT_MISMATCH; those of `work`.
  absl::Status Begin(const v1::ExportRequest& request, const PermittedCollection& collection,
                     base::LongWork& work);
  bool done() const { return progress_.exported_count == source_count_; }
  const std::string& collection() const { return request_.collection(); }

  // Makes the request for the next `size` sources, or for the rest.
  // Errors: as Begin; PERMISSION_DENIED when the access of the caller has changed.
  // REQUIRES: begun, and not done.
  absl::Status MakePart(std::size_t size, const PermittedCollection& collection,
                        base::LongWork& work);
  // The part as a valid search. Borrows the request, which the next MakePart replaces.
  // Errors: those of ValidateSearch and ValidateRecommend.
  absl::StatusOr<ValidSearch> ValidPart() const;
  SearchPipeline::Method method() const {
    return of_users() ? SearchPipeline::Method::kRecommend : SearchPipeline::Method::kSearch;
  }
  const std::vector<std::string>& source_ids() const { return source_ids_; }
  // How many sources are answered, this part included.
  std::uint64_t exported_count() const { return part_progress_.exported_count; }
  std::uint64_t source_count() const { return source_count_; }
  // The cursor that continues after the part; empty for the last part.
  const std::string& part_cursor() const { return part_cursor_; }
  void FinishPart() { progress_ = part_progress_; }

 private:
  bool of_users() const { return request_.sources() == v1::ExportRequest::SOURCES_USERS; }
  absl::Status CheckOptions() const;
  // Takes from the cursor which content is exported, and how many sources were exported before.
  absl::Status ReadCursor(const std::string& cursor);
  std::string CursorAfterPart() const;
  absl::StatusOr<PermittedSnapshot> Pin(const PermittedCollection& collection) const;
  // The items that are sources; null for all.
  absl::StatusOr<std::shared_ptr<const RowMask>> SourceRows(const PermittedSnapshot& pinned,
                                                            base::LongWork& work) const;
  // Calls visit(row) for each source from `row` on, until visit returns false. Returns the row of
  // the next source.
  template <class Visit>
  absl::StatusOr<Row> VisitSources(const PermittedSnapshot& pinned, Row row, base::LongWork& work,
                                   Visit visit) const;
  // The ids of the items or of the users, whichever are the sources.
  const data::IdIndex& IdsOf(const engine::Snapshot& snapshot) const;
  // Counts the sources, and finds the next one.
  absl::Status CountSources(const PermittedSnapshot& pinned, base::LongWork& work);

  const ServedSnapshots& snapshots_;
  const Limits& limits_;
  v1::ExportRequest request_;  // without its options and its cursor
  // Hashes of the request, and of the rows and users that exist for the caller.
  std::uint64_t request_hash_ = 0;
  std::uint64_t access_hash_ = 0;
  std::string snapshot_id_;  // the content that is exported
  std::uint64_t source_count_ = 0;
  ExportProgress progress_;
  ExportProgress part_progress_;
  std::string part_cursor_;
  std::vector<std::string> source_ids_;
  // The request of the part; all parts have the same options.
  v1::SearchRequest search_;
  v1::RecommendRequest recommend_;
};

// A message of an Export in wire form.
class ExportReply final : public Reply {
 public:
  // Borrows both.
  ExportReply(const ExportRun& run, const Reply& answer);

  std::size_t bytes() const override { return sizes_.bytes; }
  bool is_exact() const override { return answer_.is_exact(); }
  std::uint8_t* Write(std::uint8_t* out) const override;

 private:
  template <class Sink>
  void Encode(Sink& out) const;

  const ExportRun& run_;
  const Reply& answer_;
  WireSizes sizes_;
};

}  // namespace simile::service
