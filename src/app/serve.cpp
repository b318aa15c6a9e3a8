#include "app/serve.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "app/background_task.h"
#include "app/first_lines.h"
#include "app/load_progress.h"
#include "app/stop_signals.h"
#include "app/wiring.h"
#include "observe/build_info.h"
#include "service/library_logs.h"

namespace simile::app {
namespace {

constexpr int kProgressTickMs = 100;
constexpr int kForEver = -1;
// EX_TEMPFAIL of sysexits.h: whoever restarts the server may find the GPU again.
constexpr int kExitForRestart = 75;

int Fail(const absl::Status& status) {
  fmt::print(stderr, "error: {}\n", std::string(status.message()));
  return EXIT_FAILURE;
}

// A peer that closes while it is written to is an error of that write, not the end of the process.
void IgnoreBrokenPipes() { std::signal(SIGPIPE, SIG_IGN); }

// As many descriptors as the configured connections want, when the process may have them.
void RaiseDescriptorLimit(const Limits& limits) {
  constexpr rlim_t kForEverythingElse = 128;
  rlimit descriptors{};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return;
  const rlim_t wanted =
      std::min<rlim_t>(limits.connections_max + kForEverythingElse, descriptors.rlim_max);
  if (descriptors.rlim_cur >= wanted) return;
  descriptors.rlim_cur = wanted;
  // When it fails the server takes fewer connections, and says so itself.
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &descriptors));
}

// What makes a server stop.
enum class StopCause : std::uint8_t { kSignal, kRestart };

// Waits for what comes first: a signal, a lost GPU that is to be met by a restart, or the end of
// the task. Nothing when it is the task.
//   task  may be null: there is none
std::optional<StopCause> AwaitStop(const App& app, const BackgroundTask* task,
                                   StopSignals& signals) {
  while (true) {
    pollfd watched[] = {{signals.fd(), POLLIN, 0},
                        {app.restart_fd(), POLLIN, 0},
                        {task != nullptr ? task->done_fd() : -1, POLLIN, 0}};
    poll(watched, 3, kForEver);
    if (signals.Take()) return StopCause::kSignal;
    if (watched[1].revents != 0) return StopCause::kRestart;
    if (task != nullptr && task->done()) return std::nullopt;
  }
}

// As AwaitStop, drawing how far the load is.
std::optional<StopCause> AwaitLoad(const App& app, const BackgroundTask& load, StopSignals& signals,
                                   LoadProgress& progress) {
  while (progress.shown() && !load.done()) {
    progress.Draw(app.store().List());
    pollfd watched[] = {
        {signals.fd(), POLLIN, 0}, {app.restart_fd(), POLLIN, 0}, {load.done_fd(), POLLIN, 0}};
    if (poll(watched, 3, kProgressTickMs) > 0) break;
  }
  progress.Clear();
  return AwaitStop(app, &load, signals);
}

// Waits until the drain is done or a signal comes. Which of them: the signal, or nothing.
std::optional<int> AwaitDrain(const BackgroundTask& drain, StopSignals& signals) {
  while (true) {
    pollfd watched[] = {{signals.fd(), POLLIN, 0}, {drain.done_fd(), POLLIN, 0}};
    poll(watched, 2, kForEver);
    if (const auto signal = signals.Take()) return signal;
    if (drain.done()) return std::nullopt;
  }
}

// Drains, unless a second signal ends the process here. Whether every call finished.
bool DrainUnlessHurried(App& app, StopSignals& signals) {
  app.log().Info("stopping: no new calls, those in flight finish");
  bool drained = false;
  {
    const BackgroundTask drain([&] { drained = app.Drain(); });
    if (const auto second = AwaitDrain(drain, signals)) _exit(128 + *second);
  }
  app.log().Info(drained ? "stopped" : "stopped; calls that took too long were cut off");
  return drained;
}

// Drains, and the exit status for that.
int Stop(App& app, StopCause cause, StopSignals& signals) {
  if (cause == StopCause::kRestart) app.log().Warn("the GPU is lost: a restart is asked for");
  const bool drained = DrainUnlessHurried(app, signals);
  if (cause == StopCause::kRestart) return kExitForRestart;
  return drained ? EXIT_SUCCESS : EXIT_FAILURE;
}

// Ends the process at once where destructors would wait for a device that hangs.
int Leave(const App& app, int status) {
  if (app.gpu_lost()) _exit(status);
  return status;
}

// Loads what is configured. What stops the server meanwhile ends the process here.
absl::Status LoadUnlessStopped(App& app, StopSignals& signals, LoadProgress& output) {
  absl::Status loaded;
  const auto announce = [&output](const engine::Snapshot& snapshot, Clock::Duration took) {
    output.Say(CollectionLines(snapshot, took));
  };
  {
    const BackgroundTask load([&] { loaded = app.LoadCollections(announce); });
    if (const auto cause = AwaitLoad(app, load, signals, output)) {
      // A load cannot be broken off, and leaves nothing behind but memory: no need to wait for it.
      _exit(Stop(app, *cause, signals));
    }
  }
  return loaded;
}

}  // namespace

int RunServe(const Config& config) {
  StopSignals signals;
  IgnoreBrokenPipes();
  RaiseDescriptorLimit(config.limits);

  auto created = App::Create(config);
  if (!created.ok()) return Fail(created.status());
  App& app = **created;
  const service::LibraryLogs library_logs(app.log());
  LoadProgress output;
  output.Say(BackendLine(observe::GetBuildInfo(), app.backend()));
  const absl::Status loaded = LoadUnlessStopped(app, signals, output);
  if (!loaded.ok()) return Leave(app, Fail(loaded));
  output.Say(ListeningLine(app.address(), config.metrics_listen, app.metrics_port()));

  const StopCause cause = AwaitStop(app, nullptr, signals).value_or(StopCause::kSignal);
  const int status = Stop(app, cause, signals);
  if (status == EXIT_SUCCESS) return Leave(app, status);
  _exit(status);  // destructors would wait for the calls that took too long
}

}  // namespace simile::app
