#include "service/changes/collection_changes.h"

#include <cstddef>
#include <future>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "service/calls/call.h"
#include "service/changes/data_root.h"
#include "service/requests/answer_options.h"
#include "service/requests/request_fields.h"

namespace simile::service {
namespace {

using base::ErrorReason;
using engine::SnapshotPtr;

absl::Status NothingToRollBack(const std::string& collection) {
  return base::Error(
      ErrorReason::kNothingToRollBack,
      fmt::format("{} has no earlier generation: nothing else was served since its first load",
                  collection),
      "collection");
}

//   found  what is wrong with the folder's files; may be empty
absl::Status EarlierFolderChanged(const std::string& collection, std::string_view found = {}) {
  const std::string why = found.empty() ? "" : fmt::format(" ({})", found);
  return base::Error(
      ErrorReason::kNothingToRollBack,
      fmt::format(
          "{}: the earlier generation is no longer in memory, and its "
          "folder is gone or holds other content by now{}; nothing was changed. To keep a way "
          "back, write changes into a new folder and reload that",
          collection, why),
      "collection");
}

// The error of a rollback that could not read the earlier generation's folder. Files that are
// invalid now have changed since that generation was loaded.
absl::Status RollbackError(const std::string& collection, const absl::Status& error) {
  switch (base::ReasonOf(error)) {
    case ErrorReason::kNothingToRollBack:
      return EarlierFolderChanged(collection);
    case ErrorReason::kInvalidFiles:
    case ErrorReason::kInvalidField:
    case ErrorReason::kOutsideDataRoot:
      return EarlierFolderChanged(collection, {error.message().data(), error.message().size()});
    default:
      return error;
  }
}

// The answer to a blocked caller. Shared, because Stop may answer on another thread, which is then
// still inside set_value.
using Answer = std::promise<absl::StatusOr<SnapshotPtr>>;

ChangeCaller WaitingFor(const std::shared_ptr<Answer>& answer) {
  return {
      .progress = {},
      .done = [answer](const absl::StatusOr<SnapshotPtr>& result) { answer->set_value(result); },
      .left = {},
      .key = {}};
}

absl::Status CheckExpected(const ChangeRequest& request, const engine::Snapshot& served) {
  return CheckSnapshotId(FieldPath{"expected_snapshot_id"}, request.expected_snapshot_id,
                         served.collection, served.id);
}

// Whether the fingerprints alone show that two states of a folder have different content.
bool CertainlyDiffer(const data::FolderFingerprint& a, const data::FolderFingerprint& b) {
  for (std::size_t role = 0; role < a.files.size(); ++role) {
    const data::FileFingerprint& one = a.files[role];
    const data::FileFingerprint& other = b.files[role];
    if (one.display_name.empty() != other.display_name.empty() || one.bytes != other.bytes) {
      return true;
    }
  }
  return false;
}

// `-` where nothing was compared.
std::string OverlapText(const engine::Snapshot& snapshot) {
  return snapshot.overlap ? fmt::format("{:.1f} %", 100 * *snapshot.overlap) : "-";
}

}  // namespace

void CollectionChanges::Generation::ReadNext(Source source) {
  const FolderName& first = loaded_from.found;
  if (source.found.path == first.path && source.found.configured == first.configured) {
    loaded_from = std::move(source);
    equal.reset();
  } else {
    equal = std::move(source);
  }
}

CollectionChanges::CollectionChanges(Options options, const Parts& parts)
    : options_(std::move(options)), parts_(parts), under_way_(parts.clock) {}

absl::StatusOr<SnapshotPtr> CollectionChanges::LoadAtStart(const std::string& name,
                                                           const std::filesystem::path& folder) {
  ChangeRequest request;
  request.kind = ChangeKind::kLoad;
  request.collection = name;
  request.logs_failure = false;
  request.folder.path = PathInDataRoot(options_.data_root, folder);
  if (request.folder.path.empty()) {
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(folder, error);
    request.folder = {(error ? folder : absolute).string(), true};
  }
  request.folder.by_operator = true;
  if (!options_.required) {
    const std::lock_guard lock(mutex_);
    if (!histories_.contains(name)) retry_folders_[name] = request.folder;
  }
  return MakeHere(request);
}

absl::Status CollectionChanges::Start(ChangeRequest request, ChangeCaller caller) {
  if (absl::Status allowed = CheckAllowed(request.collection); !allowed.ok()) return allowed;
  // This form also refuses NaN.
  if (request.min_overlap && !(*request.min_overlap >= 0 && *request.min_overlap <= 1)) {
    return Refuse(FieldPath{"min_overlap"}, "{}; give a share of the answers, 0 to 1",
                  *request.min_overlap);
  }
  std::string& folder = request.folder.path;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  bool joined = false;
  return Begin(request, std::move(caller), joined);
}

absl::Status CollectionChanges::Begin(const ChangeRequest& request, ChangeCaller caller,
                                      bool& joined) {
  if (const auto answer = AnswerAtOnce(request)) {
    if (answer->ok()) caller.done(*answer);
    return answer->status();
  }
  bool began = false;
  absl::Status taken = under_way_.Join(request, std::move(caller), began);
  joined = taken.ok() && !began;
  if (!taken.ok() || joined) return taken;
  const absl::Status queued = Guarded([&] { return Enqueue(request); });
  if (!queued.ok()) under_way_.End(request.collection, queued);
  return absl::OkStatus();
}

absl::StatusOr<SnapshotPtr> CollectionChanges::ReloadServed(const std::string& name,
                                                            SnapshotPtr* before) {
  ChangeRequest request;
  request.kind = ChangeKind::kReload;
  request.collection = name;
  request.logs_failure = false;
  for (;;) {
    // A reload under way may have read the files before they changed.
    under_way_.AwaitEnd(name);
    if (before != nullptr) {
      auto served = parts_.store.Pin(name);
      if (!served.ok()) return served;
      *before = *std::move(served);
    }
    const auto answer = std::make_shared<Answer>();
    bool joined = false;
    const absl::Status begun = Begin(request, WaitingFor(answer), joined);
    if (begun.ok() && !joined) return answer->get_future().get();
    if (!begun.ok() && base::ReasonOf(begun) != ErrorReason::kChangeInProgress) return begun;
  }
}

absl::Status CollectionChanges::Unload(const std::string& name,
                                       const std::string& expected_snapshot_id) {
  if (absl::Status allowed = CheckAllowed(name); !allowed.ok()) return allowed;
  ChangeRequest request;
  request.kind = ChangeKind::kUnload;
  request.collection = name;
  request.expected_snapshot_id = expected_snapshot_id;
  return MakeHere(request).status();
}

CollectionChanges::Origin CollectionChanges::FindOrigin(const engine::Snapshot& snapshot) const {
  const std::lock_guard lock(mutex_);
  const auto place = histories_.find(snapshot.collection);
  if (place == histories_.end()) return {};
  const History& history = place->second;
  if (history.served.snapshot_id != snapshot.id) return {};  // replaced meanwhile
  Origin origin;
  const Generation& served = history.served;
  if (!served.next().asked.configured) origin.folder = served.next().asked.path;
  if (!served.loaded_from.found.configured) origin.loaded_from = served.loaded_from.found.path;
  if (history.earlier) origin.rollback_snapshot_id = history.earlier->snapshot_id;
  return origin;
}

bool CollectionChanges::LastLoadFailed(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto place = histories_.find(name);
  return place != histories_.end() && place->second.last_load_failed;
}

absl::Status CollectionChanges::CheckAllowed(const std::string& name) const {
  if (!options_.allowed_over_wire) {
    return base::Error(
        ErrorReason::kChangesNotAllowed,
        "this server does not let collections be changed over the wire; start it with "
        "--allow-changes (collections.changes_allowed)");
  }
  return CheckCollectionName({"collection"}, name, parts_.limits);
}

std::optional<CollectionChanges::Result> CollectionChanges::AnswerAtOnce(
    const ChangeRequest& request) const {
  if (request.kind == ChangeKind::kLoad || under_way_.Has(request.collection)) return std::nullopt;
  const auto history = FindHistory(request.collection);
  if (!history && request.kind != ChangeKind::kRollback && RetryFolder(request.collection)) {
    return std::nullopt;
  }
  // The store's error has the nearest name.
  if (!history) return parts_.store.Pin(request.collection);
  if (request.kind != ChangeKind::kRollback || history->earlier) return std::nullopt;
  return history->rolled_back ? parts_.store.Pin(request.collection)
                              : NothingToRollBack(request.collection);
}

absl::Status CollectionChanges::Enqueue(const ChangeRequest& request) {
  return parts_.queue.Submit(
      [this, request] { Make(request); },
      [this, request] {
        under_way_.End(
            request.collection,
            base::Error(ErrorReason::kStopping, "the server is stopping; nothing was changed"));
      });
}

CollectionChanges::Result CollectionChanges::MakeHere(const ChangeRequest& request) {
  const auto answer = std::make_shared<Answer>();
  bool began = false;
  const absl::Status joined = under_way_.Join(request, WaitingFor(answer), began);
  if (!joined.ok()) return joined;
  if (began) Make(request);
  return answer->get_future().get();
}

void CollectionChanges::Make(const ChangeRequest& request) {
  Result result = SnapshotPtr();
  const absl::Status fault = Guarded([&] { result = Apply(request); });
  if (!fault.ok()) {
    result = fault;
    parts_.log.Error("change of a collection failed",
                     {{"collection", request.collection},
                      {"error", std::string_view(fault.message().data(), fault.message().size())}});
  }
  KeepFailed(request.collection, result.status());
  under_way_.End(request.collection, result);
}

CollectionChanges::Result CollectionChanges::Apply(const ChangeRequest& request) {
  switch (request.kind) {
    case ChangeKind::kLoad:
      return Load(request);
    case ChangeKind::kReload:
      return Reload(request);
    case ChangeKind::kRollback:
      return RollBack(request);
    case ChangeKind::kUnload:
      return Remove(request);
  }
  return absl::InternalError("a change of no kind");
}

CollectionChanges::Result CollectionChanges::Load(const ChangeRequest& request) {
  return LoadFrom(ResolveFolder(options_.data_root, request.folder), request);
}

CollectionChanges::Result CollectionChanges::LoadFrom(const absl::StatusOr<FoundFolder>& folder,
                                                      const ChangeRequest& request) {
  if (!folder.ok()) return folder.status();
  if (const auto history = FindHistory(request.collection)) {
    if (ServedFiles(*folder, *history)) return parts_.store.Pin(request.collection);
    return base::Error(ErrorReason::kCollectionExists,
                       fmt::format("collection \"{}\" is served already, from another folder or "
                                   "from files that have changed since; reload it, or choose "
                                   "another name",
                                   request.collection),
                       "collection");
  }
  Generation generation;
  generation.loaded_from = {folder->asked, folder->found, {}};
  auto entry = Entry(request.collection, {std::move(generation), {}, false, false});
  auto loaded = parts_.publisher.Create(MakeChange(request, *folder));
  if (loaded.ok()) {
    Generation& served = entry.mapped().served;
    served.loaded_from.fingerprint = std::move(loaded->fingerprint);
    served.snapshot_id = std::move(loaded->content_id);
    served.field_types = std::move(loaded->field_types);
    Remember(std::move(entry));
  }
  return Record("load", request, loaded);
}

CollectionChanges::Result CollectionChanges::Reload(const ChangeRequest& request) {
  const Result served = parts_.store.Pin(request.collection);
  std::optional<History> history = FindHistory(request.collection);
  if (const auto known = RetryFolder(request.collection); known && !history) {
    if (!request.expected_snapshot_id.empty()) return served;  // no content is served
    return LoadFrom(FindReloadFolder(request, *known), request);
  }
  if (!served.ok() || !history) return served;
  const absl::StatusOr<FoundFolder> folder =
      FindReloadFolder(request, history->served.next().asked);
  if (!folder.ok() && request.folder.path.empty()) {
    return Record("reload", request, folder.status());  // not a mistake of the caller
  }
  if (!folder.ok()) return folder.status();
  if (auto files = ServedFiles(*folder, *history)) {
    const bool moves = folder->asked != history->served.next().asked;
    history->served.ReadNext({folder->asked, folder->found, *std::move(files)});
    Remember(Entry(request.collection, *std::move(history)));
    if (moves) LogUnchanged("reload", request.collection);
    return served;
  }
  const absl::Status expected = CheckExpected(request, **served);
  if (!expected.ok()) return expected;

  auto entry = Entry(request.collection, *std::move(history));
  Source source{folder->asked, folder->found, {}};
  auto loaded = parts_.publisher.Replace(MakeChange(request, *folder));
  if (loaded.ok()) {
    History& now = entry.mapped();
    source.fingerprint = std::move(loaded->fingerprint);
    if (loaded->published) {
      now.earlier = std::exchange(
          now.served,
          {std::move(source), {}, std::move(loaded->content_id), std::move(loaded->field_types)});
      now.rolled_back = false;
    } else {
      now.served.ReadNext(std::move(source));
    }
    Remember(std::move(entry));
  }
  return Record("reload", request, loaded);
}

CollectionChanges::Result CollectionChanges::RollBack(const ChangeRequest& request) {
  const Result served = parts_.store.Pin(request.collection);
  std::optional<History> history = FindHistory(request.collection);
  if (!served.ok() || !history) return served;
  if (!history->earlier) {
    return history->rolled_back ? served : NothingToRollBack(request.collection);
  }
  const absl::Status expected = CheckExpected(request, **served);
  if (!expected.ok()) return expected;

  const Result kept = parts_.store.PinContent(request.collection, history->earlier->snapshot_id);
  if (!kept.ok()) return RollBackFromFolder(request, *history);
  if (!request.allow_shape_change) {
    const absl::Status shape =
        engine::CheckShape(**served, (*kept)->dim(), (*kept)->dataset->metric);
    if (!shape.ok()) return shape;
  }
  // The folder that an equal copy was read from may hold other content by now.
  history->earlier->equal.reset();
  auto entry = Entry(request.collection, {*std::move(history->earlier), {}, true, false});
  const auto restored = parts_.publisher.Restore(request.collection, **kept);
  if (restored.ok()) Remember(std::move(entry));
  return Record("rollback", request, restored);
}

CollectionChanges::Result CollectionChanges::RollBackFromFolder(const ChangeRequest& request,
                                                                const History& history) {
  Generation earlier = *history.earlier;
  std::optional<Source> equal = std::exchange(earlier.equal, std::nullopt);
  auto entry = Entry(request.collection, {std::move(earlier), {}, true, false});
  Source& source = entry.mapped().served.loaded_from;
  auto loaded = LoadEarlier(request, history, source);
  if (equal && !loaded.ok() && base::ReasonOf(loaded.status()) == ErrorReason::kNothingToRollBack) {
    source = *std::move(equal);
    loaded = LoadEarlier(request, history, source);
  }
  if (loaded.ok()) {
    source.fingerprint = std::move(loaded->fingerprint);
    Remember(std::move(entry));
  }
  return Record("rollback", request, loaded);
}

absl::StatusOr<engine::Publisher::Loaded> CollectionChanges::LoadEarlier(
    const ChangeRequest& request, const History& history, Source& source) {
  const absl::StatusOr<FoundFolder> folder = ResolveFolder(options_.data_root, source.found);
  if (!folder.ok() && absl::IsResourceExhausted(folder.status())) return folder.status();
  // ResolveFolder's error names a field that a rollback request does not have.
  if (!folder.ok()) return EarlierFolderChanged(request.collection);
  const auto now = data::TakeFingerprint(folder->path, parts_.limits, folder->links_within);
  // The usual reason for other content: the folder was overwritten, and then reloaded.
  if (now.ok() && (history.served.Has(*now) || CertainlyDiffer(*now, source.fingerprint))) {
    return EarlierFolderChanged(request.collection);
  }
  engine::Publisher::Change change = MakeChange(request, *folder);
  change.required_id = history.earlier->snapshot_id;
  change.required_types = history.earlier->field_types;
  auto loaded = parts_.publisher.Replace(change);
  if (loaded.ok()) return loaded;
  return RollbackError(request.collection, loaded.status());
}

CollectionChanges::Result CollectionChanges::Remove(const ChangeRequest& request) {
  if (const Result served = parts_.store.Pin(request.collection); served.ok()) {
    const absl::Status expected = CheckExpected(request, **served);
    if (!expected.ok()) return expected;
  } else if (base::ReasonOf(served.status()) != ErrorReason::kCollectionNotLoaded ||
             !request.expected_snapshot_id.empty()) {
    return served;
  }
  Result removed = parts_.store.Remove(request.collection);
  if (!removed.ok()) return removed;
  parts_.log.Info("collection unloaded", {{"collection", request.collection}});
  const std::lock_guard lock(mutex_);
  histories_.erase(request.collection);
  retry_folders_.erase(request.collection);
  return removed;
}

absl::StatusOr<FoundFolder> CollectionChanges::FindReloadFolder(const ChangeRequest& request,
                                                                const FolderName& known) const {
  if (!request.folder.path.empty()) return ResolveFolder(options_.data_root, request.folder);
  absl::StatusOr<FoundFolder> served = ResolveFolder(options_.data_root, known);
  if (!served.ok() || request.folder.within.empty()) return served;
  // A caller without a folder of its own in the data root may follow links only within the served
  // folder.
  const auto within = ResolveInDataRoot(options_.data_root, request.folder.within);
  served->links_within = within.ok() ? *within : served->path;
  return served;
}

std::optional<data::FolderFingerprint> CollectionChanges::ServedFiles(
    const FoundFolder& folder, const History& history) const {
  auto now = data::TakeFingerprint(folder.path, parts_.limits, folder.links_within);
  if (!now.ok() || !history.served.Has(*now)) return std::nullopt;
  return *std::move(now);
}

engine::Publisher::Change CollectionChanges::MakeChange(const ChangeRequest& request,
                                                        const FoundFolder& folder) {
  return {.collection = request.collection,
          .folder = folder.path,
          .links_within = folder.links_within,
          .allow_shape_change = request.allow_shape_change,
          .min_overlap = request.min_overlap.value_or(options_.min_overlap),
          .required_id = {},
          .progress = [this, &request](const engine::ChangeProgress& progress) {
            under_way_.Report(request.collection, progress);
          }};
}

std::optional<CollectionChanges::History> CollectionChanges::FindHistory(
    const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto place = histories_.find(name);
  if (place == histories_.end()) return std::nullopt;
  return place->second;
}

std::optional<FolderName> CollectionChanges::RetryFolder(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto place = retry_folders_.find(name);
  if (place == retry_folders_.end()) return std::nullopt;
  return place->second;
}

void CollectionChanges::KeepFailed(const std::string& name, const absl::Status& error) {
  // COLLECTION_NOT_LOADED only says that an earlier load failed.
  if (error.ok() || base::ReasonOf(error) == ErrorReason::kCollectionNotLoaded) return;
  const absl::Status kept = Guarded([&] {
    if (RetryFolder(name)) parts_.store.KeepFailed(name, error);
  });
  if (!kept.ok())
    parts_.log.Error("a collection that failed is not listed", {{"collection", name}});
}

CollectionChanges::Histories::node_type CollectionChanges::Entry(const std::string& name,
                                                                 History history) {
  history.last_load_failed = false;
  Histories alone;
  alone.emplace(name, std::move(history));
  return alone.extract(alone.begin());
}

void CollectionChanges::Remember(Histories::node_type entry) {
  const std::lock_guard lock(mutex_);
  retry_folders_.erase(entry.key());
  auto former = histories_.insert(std::move(entry));
  if (!former.inserted) former.position->second = std::move(former.node.mapped());
}

// For both functions: the change is made already. If a text finds no memory, the line is written
// without the text.

void CollectionChanges::LogUnchanged(const char* change, const std::string& name) const {
  std::string folder, next;
  static_cast<void>(Guarded([&] {
    const auto history = FindHistory(name);
    if (!history) return;  // unloaded meanwhile
    folder = history->served.loaded_from.found.path;
    next = history->served.next().asked.path;
  }));
  parts_.log.Info(
      "collection unchanged: its files have the content that is served",
      {{"collection", name}, {"change", change}, {"folder", folder}, {"next_reload_reads", next}});
}

void CollectionChanges::LogPublished(const char* change, const engine::Snapshot& published) const {
  std::string folder, overlap, unfit;
  static_cast<void>(Guarded([&] {
    const auto history = FindHistory(published.collection);
    if (history) folder = history->served.loaded_from.found.path;
    overlap = OverlapText(published);
    unfit = data::UnfitText(published.dataset->payload);
  }));
  parts_.log.Info("collection published", {{"collection", published.collection},
                                           {"change", change},
                                           {"folder", folder},
                                           {"overlap", overlap},
                                           {"snapshot_id", published.id},
                                           {"version", published.version},
                                           {"rows", published.row_count()},
                                           {"dim", published.dim()},
                                           {"unfit", unfit}});
}

CollectionChanges::Result CollectionChanges::Record(
    const char* change, const ChangeRequest& request,
    const absl::StatusOr<engine::Publisher::Loaded>& loaded) {
  const std::string& name = request.collection;
  if (!loaded.ok()) {
    const absl::Status& status = loaded.status();
    parts_.metrics.CountReload(false);
    {
      const std::lock_guard lock(mutex_);
      const auto place = histories_.find(name);
      if (place != histories_.end()) place->second.last_load_failed = true;
    }
    if (!request.logs_failure) return status;
    parts_.log.Warn(
        "collection not published",
        {{"collection", name},
         {"change", change},
         {"code", absl::StatusCodeToString(status.code())},
         {"error", std::string_view(status.message().data(), status.message().size())}});
    return status;
  }
  if (!loaded->published) {
    LogUnchanged(change, name);
    return loaded->snapshot;
  }
  const engine::Snapshot& published = *loaded->snapshot;
  parts_.metrics.CountReload(true);
  LogPublished(change, published);
  if (request.kind != ChangeKind::kLoad) {  // the caller of a first load shows its notes
    for (const std::string& note : published.dataset->notes) {
      parts_.log.Info("note on a collection", {{"collection", name}, {"note", note}});
    }
  }
  return loaded->snapshot;
}

}  // namespace simile::service
