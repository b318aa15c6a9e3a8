#include "app/serve.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
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

// Waits until the task is done or a signal comes. Which of them: the signal, or nothing.
std::optional<int> AwaitEnd(const BackgroundTask& task, StopSignals& signals) {
  while (true) {
    pollfd watched[] = {{signals.fd(), POLLIN, 0}, {task.done_fd(), POLLIN, 0}};
    poll(watched, 2, kForEver);
    if (const auto signal = signals.Take()) return signal;
    if (task.done()) return std::nullopt;
  }
}

// As AwaitEnd, drawing how far the load is.
std::optional<int> AwaitLoad(const App& app, const BackgroundTask& load, StopSignals& signals,
                             LoadProgress& progress) {
  while (progress.shown() && !load.done()) {
    progress.Draw(app.store().List());
    pollfd watched[] = {{signals.fd(), POLLIN, 0}, {load.done_fd(), POLLIN, 0}};
    if (poll(watched, 2, kProgressTickMs) > 0) break;
  }
  progress.Clear();
  return AwaitEnd(load, signals);
}

void AwaitSignal(StopSignals& signals) {
  while (!signals.Take()) {
    pollfd watched{signals.fd(), POLLIN, 0};
    poll(&watched, 1, kForEver);
  }
}

// Drains, unless a second signal ends the process here. Whether every call finished.
bool DrainUnlessHurried(App& app, StopSignals& signals) {
  app.log().Info("stopping: no new calls, those in flight finish");
  bool drained = false;
  {
    const BackgroundTask drain([&] { drained = app.Drain(); });
    if (const auto second = AwaitEnd(drain, signals)) _exit(128 + *second);
  }
  app.log().Info(drained ? "stopped" : "stopped; calls that took too long were cut off");
  return drained;
}

// Loads what is configured. A signal meanwhile stops the server and ends the process here.
absl::Status LoadUnlessStopped(App& app, StopSignals& signals, LoadProgress& output) {
  absl::Status loaded;
  const auto announce = [&output](const engine::Snapshot& snapshot, Clock::Duration took) {
    output.Say(CollectionLines(snapshot, took));
  };
  {
    const BackgroundTask load([&] { loaded = app.LoadCollections(announce); });
    if (AwaitLoad(app, load, signals, output)) {
      // A load cannot be broken off, and leaves nothing behind but memory: no need to wait for it.
      _exit(DrainUnlessHurried(app, signals) ? EXIT_SUCCESS : EXIT_FAILURE);
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
  if (!loaded.ok()) return Fail(loaded);
  output.Say(ListeningLine(app.address(), config.metrics_listen, app.metrics_port()));

  AwaitSignal(signals);
  if (DrainUnlessHurried(app, signals)) return EXIT_SUCCESS;
  _exit(EXIT_FAILURE);  // destructors would wait for the calls that took too long
}

}  // namespace simile::app
