#include "service/calls/health.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "grpc/health/v1/health.pb.h"
#include "service/calls/call.h"
#include "simile/limits.h"

namespace simile::service {
namespace {

constexpr char kServerName[] = "";

// Bounded, because a change is sent to all watchers of the name at once.
constexpr std::size_t kWatchersMax = 1'024;

absl::Status CheckName(const std::string& name) {
  const std::size_t bytes_max = Limits().collection_name_bytes_max;
  if (name.size() <= bytes_max) return absl::OkStatus();
  return base::Error(base::ErrorReason::kInvalidField,
                     fmt::format("has {} bytes; names of collections have at most {}",
                                 base::Grouped(name.size()), bytes_max),
                     "service");
}

}  // namespace

// A call that gets each change of one name.
struct Health::Watcher {
  Watcher(WatchCall& watching, std::string watched) : call(watching), name(std::move(watched)) {}

  WatchCall& call;
  const std::string name;
  std::optional<std::stop_callback<std::function<void()>>> on_leave;
};

Health::Health()
    : is_serving_{{kServerName, false}, {kLivenessName, true}},
      places_(CallerShares::OfPlaces(kWatchersMax)) {}
Health::~Health() = default;

void Health::SetServing(bool serving) { SetCollectionServing(kServerName, serving); }

void Health::SetCollectionServing(const std::string& collection, bool serving) {
  const std::lock_guard lock(mutex_);
  Set(collection, serving && !draining_);
}

ServingState Health::state() const {
  const std::lock_guard lock(mutex_);
  if (draining_) return ServingState::kDraining;
  return is_serving_.at(kServerName) ? ServingState::kServing : ServingState::kStarting;
}

bool Health::AnnounceDrain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  bool was_serving = false;
  for (const auto& [name, serving] : is_serving_) {
    if (name == kLivenessName || !serving) continue;
    was_serving = true;
    Set(name, false);
  }
  return was_serving;
}

void Health::EndWatches() {
  Watchers ended;
  {
    const std::lock_guard lock(mutex_);
    watches_ended_ = true;
    ended.swap(watchers_);
  }
  // The calls end without an error. Clients of gRPC drop unread messages of a call that ends with
  // an error. One of these may be the NOT_SERVING that they watch for.
  for (const std::shared_ptr<Watcher>& watcher : ended) watcher->call.Finish(absl::OkStatus());
}

void Health::Check(Call& call, const Request& request, Response& response) const {
  call.Finish(Guarded([&]() -> absl::Status {
    if (absl::Status named = CheckName(request.service()); !named.ok()) return named;
    const std::lock_guard lock(mutex_);
    if (!is_serving_.contains(request.service())) {
      return base::Error(
          base::ErrorReason::kCollectionNotFound,
          fmt::format("no collection {}; ask without a name for the server as a whole",
                      base::Quoted(request.service())),
          "service");
    }
    response = MakeResponse(request.service());
    return absl::OkStatus();
  }));
}

void Health::Watch(WatchCall& call, const Request& request) {
  const absl::Status begun = Guarded([&] {
    if (absl::Status named = CheckName(request.service()); !named.ok()) return named;
    const std::stop_token left = call.cancelled();
    const auto watcher = std::make_shared<Watcher>(call, request.service());
    absl::Status added = Add(watcher);
    // Calls Leave at once when the caller has left already, so the mutex must be free. The watch
    // may have ended meanwhile, so its call must not be used after this line.
    if (added.ok()) watcher->on_leave.emplace(left, [this, id = watcher.get()] { Leave(id); });
    return added;
  });
  if (!begun.ok()) call.Finish(begun);
}

absl::Status Health::Add(const std::shared_ptr<Watcher>& watcher) {
  const std::lock_guard lock(mutex_);
  if (watches_ended_) return StoppingError();
  const CallerKey caller = watcher->call.caller();
  if (!places_.Fits(caller, 1)) {
    return base::Error(base::ErrorReason::kQueueFull,
                       fmt::format("too many calls watch: {}; end some, or ask with Check",
                                   places_.Shortage(caller, 1)));
  }
  Response now = MakeResponse(watcher->name);
  watchers_.push_back(watcher);
  places_.Add(caller, 1);
  watcher->call.Send(std::move(now));
  return absl::OkStatus();
}

void Health::Leave(const Watcher* watcher) {
  std::shared_ptr<Watcher> left;
  {
    const std::lock_guard lock(mutex_);
    const auto place = std::find_if(watchers_.begin(), watchers_.end(),
                                    [&](const auto& known) { return known.get() == watcher; });
    if (place == watchers_.end()) return;
    left = *place;
    watchers_.erase(place);
    places_.GiveBack(left->call.caller(), 1);
  }
  left->call.Finish(CallerGoneError());
}

void Health::Set(const std::string& name, bool serving) {
  const auto [known, is_new] = is_serving_.try_emplace(name, serving);
  if (!is_new && std::exchange(known->second, serving) == serving) return;
  for (const std::shared_ptr<Watcher>& watcher : watchers_) {
    if (watcher->name == name) watcher->call.Send(MakeResponse(name));
  }
}

Health::Response Health::MakeResponse(const std::string& name) const {
  Response response;
  const auto known = is_serving_.find(name);
  response.set_status(known == is_serving_.end() ? Response::SERVICE_UNKNOWN
                      : known->second            ? Response::SERVING
                                                 : Response::NOT_SERVING);
  return response;
}

}  // namespace simile::service
