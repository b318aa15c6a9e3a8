#include "service/changes/changes_under_way.h"

#include <cassert>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include <absl/cleanup/cleanup.h>
#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"

namespace simile::service {
namespace {

constexpr std::chrono::milliseconds kProgressInterval{200};

// Bounded, because each report is sent to every call that waits for the change.
constexpr std::size_t kCallersMax = 1'024;

std::string_view NameOf(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kLoad:
      return "load";
    case ChangeKind::kReload:
      return "reload";
    case ChangeKind::kRollback:
      return "rollback";
    case ChangeKind::kUnload:
      return "unload";
  }
  return "change";
}

absl::Status InProgress(const ChangeRequest& running) {
  const FolderName& folder = running.folder;
  const bool named = !folder.path.empty() && !folder.configured;
  return base::Error(
      base::ErrorReason::kChangeInProgress,
      fmt::format(
          "a {} of {}{} is under way: the same call again joins it, any other change has to "
          "wait for its end",
          NameOf(running.kind), running.collection,
          named ? fmt::format(" from {}", base::Quoted(folder.path)) : std::string()),
      "collection");
}

void SendTo(const ChangeCaller& caller, const engine::ChangeProgress& progress) {
  if (caller.progress) caller.progress(progress);
}

void AnswerAll(const std::list<ChangeCaller>& callers,
               const absl::StatusOr<engine::SnapshotPtr>& result) {
  for (const ChangeCaller& caller : callers) caller.done(result);
}

}  // namespace

ChangesUnderWay::ChangesUnderWay(const Clock& clock)
    : clock_(clock),
      stopping_(base::Error(base::ErrorReason::kStopping,
                            "the server is stopping; ask another one, or again later")),
      left_(base::Error(base::ErrorReason::kCancelled,
                        "the caller left; the change goes on without it")),
      places_(CallerShares::OfPlaces(kCallersMax)) {}

absl::Status ChangesUnderWay::Join(const ChangeRequest& request, ChangeCaller caller, bool& began) {
  const std::optional<CallerKey> key = caller.key;
  Callers left;
  const absl::Cleanup answer = [&] { AnswerAll(left, left_); };  // without the lock
  const std::lock_guard lock(mutex_);
  left = TakeThoseWhoLeft();  // otherwise callers that come and leave would add up
  absl::Status status = AddCaller(request, std::move(caller), began);
  if (status.ok() && key) places_.Add(*key, 1);
  return status;
}

absl::Status ChangesUnderWay::AddCaller(const ChangeRequest& request, ChangeCaller caller,
                                        bool& began) {
  if (stopped_) return stopping_;
  if (caller.key && !places_.Fits(*caller.key, 1)) {
    return base::Error(
        base::ErrorReason::kChangeQueueFull,
        fmt::format("too many calls wait for changes: {}; try again when some have ended",
                    places_.Shortage(*caller.key, 1)));
  }
  const auto place = changes_.find(request.collection);
  began = place == changes_.end();
  if (began) {
    // The change is complete before it is added: an exception must not leave a change that nobody
    // makes.
    Change change;
    change.request = request;
    change.sent_at = clock_.Now();
    change.callers.push_back(std::move(caller));
    const auto added = changes_.emplace(request.collection, std::move(change)).first;
    SendTo(added->second.callers.back(), added->second.progress);
    return absl::OkStatus();
  }
  Change& change = place->second;
  if (change.request != request || request.kind == ChangeKind::kUnload) {
    return InProgress(change.request);
  }
  change.callers.push_back(std::move(caller));
  SendTo(change.callers.back(), change.progress);
  return absl::OkStatus();
}

void ChangesUnderWay::Report(const std::string& collection,
                             const engine::ChangeProgress& progress) {
  Callers left;
  {
    const std::lock_guard lock(mutex_);
    const auto place = changes_.find(collection);
    assert(place != changes_.end());
    Change& change = place->second;
    const bool of_note = change.progress.stage != progress.stage || progress.share >= 1;
    change.progress = progress;
    const Clock::TimePoint now = clock_.Now();
    if (!of_note && now - change.sent_at < kProgressInterval) return;
    change.sent_at = now;
    left = TakeThoseWhoLeft();
    for (const ChangeCaller& caller : change.callers) SendTo(caller, progress);
  }
  AnswerAll(left, left_);
}

void ChangesUnderWay::End(const std::string& collection,
                          const absl::StatusOr<engine::SnapshotPtr>& result) {
  Callers callers;
  {
    const std::lock_guard lock(mutex_);
    const auto place = changes_.find(collection);
    assert(place != changes_.end());
    callers = std::move(place->second.callers);
    changes_.erase(place);
    Release(callers);
  }
  ended_.notify_all();
  AnswerAll(callers, result);
}

bool ChangesUnderWay::Has(const std::string& collection) const {
  const std::lock_guard lock(mutex_);
  return changes_.contains(collection);
}

void ChangesUnderWay::AwaitEnd(const std::string& collection) const {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return stopped_ || !changes_.contains(collection); });
}

bool ChangesUnderWay::empty() const {
  const std::lock_guard lock(mutex_);
  return changes_.empty();
}

void ChangesUnderWay::Stop() {
  Callers callers;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    for (auto& [collection, change] : changes_) {
      callers.splice(callers.end(), change.callers);
    }
    Release(callers);
  }
  ended_.notify_all();
  AnswerAll(callers, stopping_);
}

ChangesUnderWay::Callers ChangesUnderWay::TakeThoseWhoLeft() {
  Callers left;
  for (auto& [collection, change] : changes_) {
    Callers& callers = change.callers;
    for (auto caller = callers.begin(); caller != callers.end();) {
      const auto next = std::next(caller);
      if (caller->left.stop_requested()) left.splice(left.end(), callers, caller);
      caller = next;
    }
  }
  Release(left);
  return left;
}

void ChangesUnderWay::Release(const Callers& callers) {
  for (const ChangeCaller& caller : callers) {
    if (caller.key) places_.GiveBack(*caller.key, 1);
  }
}

}  // namespace simile::service
