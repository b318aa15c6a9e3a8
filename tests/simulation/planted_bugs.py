"""Bugs that the simulation must find: edits of copies of src/engine, in force only while the bug is planted (bugs.h).

An edit is a text of the source and what it becomes; `PLANTED(kName)` there is whether the bug is planted.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Edit:
    path: str  # below src/engine
    text: str
    instead: str
    count: int = 1  # how often the text occurs; all are replaced


@dataclasses.dataclass(frozen=True)
class Bug:
    name: str  # of bugs.h
    edits: tuple[Edit, ...]


def bug(name: str, path: str, *edits: tuple[str, str]) -> Bug:
    planted = f"simulation::Planted(simulation::Bug::{name})"
    return Bug(name, tuple(Edit(path, text, instead.replace("PLANTED", planted)) for text, instead in edits))


EXECUTOR = "queue/executor.cpp"
SCHEDULE = "queue/schedule.cpp"
RUNNER = "queue/slice_runner.cpp"
STORE = "snapshots/snapshot_store.cpp"
PUBLISHER = "snapshots/publisher.cpp"
CHANGES = "snapshots/change_queue.cpp"

BUGS = (
    # The queue.
    bug("kNotifiesBeforeAdding", "queue/completers.cpp",
        ("  Queue& queue = HasLargeAnswer(*finished) ? large_ : small_;\n",
         "  Queue& queue = HasLargeAnswer(*finished) ? large_ : small_;\n"
         "  if (PLANTED) queue.wake.notify_one();\n"),
        ("    queue.finished.Add(std::move(finished));\n  }\n  queue.wake.notify_one();",
         "    queue.finished.Add(std::move(finished));\n  }\n"
         "  if (!PLANTED) queue.wake.notify_one();")),
    bug("kForgetsEarlyCancel", EXECUTOR,
        ("  if (queued->task->cancelled.stop_requested()) return Cancelled(*queued);",
         "  if (!PLANTED && queued->task->cancelled.stop_requested()) return Cancelled(*queued);")),
    bug("kKeepsOldExpiry", EXECUTOR,
        ("  if (nearer_deadline) watch_wake_.notify_one();",
         "  if (nearer_deadline && !PLANTED) watch_wake_.notify_one();")),
    bug("kGivesBytesBackTwice", EXECUTOR,
        ("  Fail(queued.id, Cancelled(queued));",
         "  if (PLANTED) counts_.queue_bytes -= queued.bytes;\n"
         "  Fail(queued.id, Cancelled(queued));")),
    bug("kTwoLead", EXECUTOR,
        ("    if (schedule_.empty() || leading_) return has_refused;",
         "    if (schedule_.empty() || (leading_ && !PLANTED)) return has_refused;"),
        ("    if (!CanLead() || stopping_ || !schedule_.IsSmall(kRunHereMs)) {",
         "    if (!CanLead() || stopping_ || (!schedule_.IsSmall(kRunHereMs) && !PLANTED)) {"),
        ("    while (schedule_.IsSmall(kRunHereMs - ms) && TakeSlice()) {",
         "    while ((schedule_.IsSmall(kRunHereMs - ms) || PLANTED) && TakeSlice()) {")),
    bug("kLosesWakeUp", EXECUTOR,
        ("    dispatch_wanted_ = !schedule_.empty() || stopping_;",
         "    dispatch_wanted_ = !PLANTED && (!schedule_.empty() || stopping_);")),
    bug("kLeavesLeadEarly", EXECUTOR,
        ("    LeaveToCompleters(finished);  // before Stop can end the completers\n",
         "    if (!PLANTED) LeaveToCompleters(finished);\n"),
        ("    if (more) WakeDispatcher();\n  }\n",
         "    if (more) WakeDispatcher();\n    if (PLANTED) LeaveToCompleters(finished);\n  }\n")),
    # The schedule.
    bug("kSharesAcrossSnapshots", "queue/cost_estimator.h",
        ("      return snapshot == other.snapshot && k_class == other.k_class;",
         "      return (snapshot == other.snapshot || PLANTED) && k_class == other.k_class;")),
    bug("kKeepsSearchesOfRemoved", SCHEDULE,
        ("      group.searches -= found->searches;\n      group.work_ms -= found->work_ms;",
         "      if (!PLANTED) group.searches -= found->searches;\n      group.work_ms -= found->work_ms;")),
    bug("kChargesNoPlainWork", SCHEDULE,
        ("  lane_virtual_ms_[ToIndex(slice.lane)] += ms / kWeights[ToIndex(slice.lane)];",
         "  if (slice.lane != Lane::kPlain || !PLANTED)\n"
         "    lane_virtual_ms_[ToIndex(slice.lane)] += ms / kWeights[ToIndex(slice.lane)];")),
    bug("kSavesIdleTimeUp", SCHEDULE,
        ("  if (IsIdle(collection)) {", "  if (IsIdle(collection) && !PLANTED) {")),
    # Passes that are paused.
    bug("kKeepsGivenUpPass", "search/plain_pass.cpp",
        ("  if (!any_left) End();", "  if (!any_left && !PLANTED) End();")),
    bug("kMixesPasses", RUNNER,
        ("    if (pass.lane == slice.lane && pass.large == slice.large && pass.shape.IsLike(slice.shape)) {",
         "    if (pass.lane == slice.lane && (pass.large == slice.large || PLANTED) &&\n"
         "        pass.shape.IsLike(slice.shape)) {")),
    bug("kChargesLastSlices", SCHEDULE,
        ("  FindOrAddCollection(*group).virtual_ms += ms;",
         "  if (slice.ends || !PLANTED) FindOrAddCollection(*group).virtual_ms += ms;")),
    # Passes that a device works on.
    bug("kDropsStartedPass", EXECUTOR,
        ("    if (queued.slices_under_way > 0) {", "    if (queued.slices_under_way > 0 && !PLANTED) {")),
    bug("kPausesPassOfDevice", EXECUTOR,
        ("      while (running_.slice.runs_to_end && !runner_.outcome().ended && KeepRunning()) {",
         "      while (!PLANTED && running_.slice.runs_to_end && !runner_.outcome().ended && KeepRunning()) {")),
    # The snapshot store.
    bug("kReadsSnapshotTwice", STORE,
        ("                                                      std::string_view id) const {\n"
         "  const std::lock_guard lock(mutex_);",
         "                                                      std::string_view id) const {\n"
         "  std::unique_lock lock(mutex_);"),
        ("    if (snapshot != nullptr && snapshot->id == id) return snapshot;",
         "    if (snapshot == nullptr || snapshot->id != id) continue;\n"
         "    if (!PLANTED) return snapshot;\n"
         "    lock.unlock();\n"
         "    return Pin(collection);")),
    bug("kClaimsInTwoSteps", STORE,
        ("absl::Status SnapshotStore::BeginReplace(const std::string& collection) {\n"
         "  const std::lock_guard lock(mutex_);\n"
         "  const auto slot = slots_.find(collection);",
         "absl::Status SnapshotStore::BeginReplace(const std::string& collection) {\n"
         "  std::unique_lock lock(mutex_);\n"
         "  auto slot = slots_.find(collection);"),
        ("  slot->second.state = CollectionState::kReloading;",
         "  if (PLANTED) {\n"
         "    lock.unlock();\n"
         "    lock.lock();\n"
         "    slot = slots_.find(collection);\n"
         "    if (slot == slots_.end()) return UnknownCollection(collection);\n"
         "  }\n"
         "  slot->second.state = CollectionState::kReloading;")),
    bug("kNotifiesOldState", STORE,
        ("  const std::lock_guard notifying(listener_mutex_);\n  bool serving = false;\n",
         "  std::unique_lock notifying(listener_mutex_, std::defer_lock);\n"
         "  if (!PLANTED) notifying.lock();\n"
         "  bool serving = false;\n"),
        ("  listener_(collection, serving);",
         "  if (!notifying.owns_lock()) notifying.lock();\n  listener_(collection, serving);")),
    bug("kAwaitsOnlyTheList", STORE,
        ("    idle_.wait(lock, [this] { return released_.empty() && !freeing_; });",
         "    idle_.wait(lock, [this] { return released_.empty() && (!freeing_ || PLANTED); });")),
    bug("kDropsLeaseOnSwap", STORE,
        ("    slot.replaced_until = std::exchange(slot.leased_until, leased_until);",
         "    slot.replaced_until = std::exchange(slot.leased_until, leased_until);\n"
         "    if (PLANTED) slot.replaced_until = leased_until_read;"),
        ("  Published published;\n  {\n    const std::lock_guard lock(mutex_);\n"
         "    Slot& slot = ClaimedSlot(collection);\n    snapshot.collection = collection;",
         "  Published published;\n"
         "  Clock::TimePoint leased_until_read = Clock::TimePoint::min();\n"
         "  if (PLANTED) {\n"
         "    const std::lock_guard lock(mutex_);\n"
         "    leased_until_read = ClaimedSlot(collection).leased_until;\n"
         "  }\n"
         "  {\n    const std::lock_guard lock(mutex_);\n"
         "    Slot& slot = ClaimedSlot(collection);\n    snapshot.collection = collection;")),
    # The publisher and its queue of changes.
    bug("kReadsBudgetUnlocked", PUBLISHER,
        ("  const std::lock_guard lock(mutex_);\n  absl::StatusOr<Budget> budget = ReadBudget();\n",
         "  std::unique_lock lock(mutex_);\n  if (PLANTED) lock.unlock();\n"
         "  absl::StatusOr<Budget> budget = ReadBudget();\n"
         "  if (!lock.owns_lock()) lock.lock();\n")),
    bug("kKeepsReservation", PUBLISHER,
        ("    const absl::Cleanup release = [&] {", "    absl::Cleanup release = [&] {"),
        ("    if (!dataset.ok()) return dataset.status();\n    if (!change.required_id",
         "    if (!dataset.ok()) {\n"
         "      if (PLANTED) std::move(release).Cancel();\n"
         "      return dataset.status();\n"
         "    }\n"
         "    if (!change.required_id")),
    bug("kReservesTwice", PUBLISHER,
        ("      reserved_bytes_ -= *reserved;", "      reserved_bytes_ -= PLANTED ? 2 * *reserved : *reserved;"),
        ("  reserved_bytes_ += needed;", "  reserved_bytes_ += PLANTED ? 2 * needed : needed;")),
    bug("kReleasesBeforeCounting", PUBLISHER,
        ("    absl::StatusOr<Snapshot> snapshot = Build(",
         "    if (PLANTED) std::move(release).Invoke();\n    absl::StatusOr<Snapshot> snapshot = Build(")),
    bug("kPinsBeforeClaiming", PUBLISHER,
        ("  if (absl::Status status = store_.BeginReplace(change.collection); !status.ok()) return status;\n"
         "  Claim claim(store_, change.collection);\n"
         "  return LoadAndPublish(change, store_.Pin(change.collection).value(), claim);",
         "  SnapshotPtr early;\n"
         "  if (PLANTED) early = store_.Pin(change.collection).value_or(nullptr);\n"
         "  if (absl::Status status = store_.BeginReplace(change.collection); !status.ok()) return status;\n"
         "  Claim claim(store_, change.collection);\n"
         "  if (early == nullptr) early = store_.Pin(change.collection).value();\n"
         "  return LoadAndPublish(change, early, claim);")),
    bug("kKeepsClaim", PUBLISHER,
        ("    if (!published_) store_.AbandonChange(collection_);",
         "    if (!published_ && !PLANTED) store_.AbandonChange(collection_);")),
    bug("kStopsBeforeSaying", CHANGES,
        ("void ChangeQueue::Stop() {\n  {",
         "void ChangeQueue::Stop() {\n  if (PLANTED) wake_.notify_one();\n  {"),
        ("    stopped_ = true;\n  }\n  wake_.notify_one();",
         "    stopped_ = true;\n  }\n  if (!PLANTED) wake_.notify_one();")),
    bug("kAdmitsInTwoSteps", CHANGES,
        ("  {\n    const std::lock_guard lock(mutex_);\n    if (stopped_) {\n",
         "  {\n    std::unique_lock lock(mutex_);\n    if (stopped_) {\n"),
        ("    waiting_.push_back({std::move(change), std::move(abandoned)});",
         "    if (PLANTED) {\n"
         "      lock.unlock();\n"
         "      lock.lock();\n"
         "    }\n"
         "    waiting_.push_back({std::move(change), std::move(abandoned)});")),
)
