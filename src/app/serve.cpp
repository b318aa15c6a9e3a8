#include "app/serve.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "app/background_task.h"
#include "app/start_output.h"
#include "app/stop_signals.h"
#include "app/wiring.h"
#include "net/library_logs.h"
#include "observe/build_info.h"

namespace simile::app {
namespace {

constexpr int kProgressTickMs = 100;
constexpr int kForEver = -1;
// EX_TEMPFAIL of sysexits.h: after a restart the GPU may work again.
constexpr int kExitForRestart = 75;

// A write to a closed connection then fails with an error and does not end the process.
void IgnoreBrokenPipes() { std::signal(SIGPIPE, SIG_IGN); }

// Raises the descriptor limit to what the configured connections need, at most to the hard limit.
void RaiseDescriptorLimit(const Limits& limits) {
  constexpr rlim_t kForEverythingElse = 128;
  rlimit descriptors{};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return;
  const rlim_t wanted = std::min<rlim_t>(
      limits.connections_max + net::MetricsEndpointOptions().connections_max + kForEverythingElse,
      descriptors.rlim_max);
  if (descriptors.rlim_cur >= wanted) return;
  descriptors.rlim_cur = wanted;
  // If it fails, the server accepts fewer connections and reports that itself.
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &descriptors));
}

// What makes a server stop.
enum class StopCause : std::uint8_t { kSignal, kParentEnded, kRestart };

// Waits for a signal, the end of the parent, a requested restart or the end of the task, whichever
// comes first. Returns nothing for the task.
//   task  may be null
std::optional<StopCause> AwaitStop(const App& app, const BackgroundTask* task,
                                   StopSignals& signals) {
  while (true) {
    pollfd watched[] = {{signals.fd(), POLLIN, 0},
                        {app.restart_fd(), POLLIN, 0},
                        {task != nullptr ? task->done_fd() : -1, POLLIN, 0}};
    poll(watched, 3, kForEver);
    if (const auto request = signals.Next()) {
      return request->parent_ended ? StopCause::kParentEnded : StopCause::kSignal;
    }
    if (watched[1].revents != 0) return StopCause::kRestart;
    if (task != nullptr && task->done()) return std::nullopt;
  }
}

// Like AwaitStop; also draws the progress of the load.
std::optional<StopCause> AwaitLoad(const App& app, const BackgroundTask& load, StopSignals& signals,
                                   StartOutput& output) {
  while (output.draws_progress() && !load.done()) {
    output.DrawProgress(app.store().List());
    pollfd watched[] = {
        {signals.fd(), POLLIN, 0}, {app.restart_fd(), POLLIN, 0}, {load.done_fd(), POLLIN, 0}};
    if (poll(watched, 3, kProgressTickMs) > 0) break;
  }
  output.ClearProgress();
  return AwaitStop(app, &load, signals);
}

// The stop of a server. A second signal ends the process at once, with 128 + its number.
class Stop {
 public:
  Stop(App& app, StopCause cause, std::chrono::milliseconds drain_delay, StopSignals& signals)
      : app_(app),
        cause_(cause),
        drain_delay_(drain_delay),
        signals_(signals),
        signalled_(cause == StopCause::kSignal) {}

  // Returns the exit status.
  int Run() {
    LogCause();
    // No delay where nobody was told that this server serves. After the loss of a GPU the CPU
    // answers during the delay.
    if (app_.AnnounceDrain()) AwaitDelay();
    const bool drained = Drain();
    // A signal after the loss of the GPU asks for an end, not for a restart.
    if (cause_ == StopCause::kRestart && !signalled_) return kExitForRestart;
    return drained ? EXIT_SUCCESS : EXIT_FAILURE;
  }

 private:
  void LogCause() const {
    if (cause_ == StopCause::kRestart) {
      app_.log().Warn("the GPU is lost: the server exits for a restart");
    }
    if (cause_ == StopCause::kParentEnded) {
      app_.log().Info("the process that started the server has ended");
    }
  }

  void AwaitDelay() {
    if (drain_delay_.count() == 0) return;
    app_.log().Info("stopping: health says NOT_SERVING, calls are still taken",
                    {{"drain_delay_ms", drain_delay_.count()}});
    const RealClock clock;
    const Clock::TimePoint end = clock.Now() + drain_delay_;
    for (Clock::TimePoint now = clock.Now(); now < end; now = clock.Now()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - now);
      pollfd watched{signals_.fd(), POLLIN, 0};
      poll(&watched, 1, static_cast<int>(left.count()));
      TakeSignals();
    }
  }

  // Returns whether every call finished.
  bool Drain() {
    app_.log().Info("stopping: no new calls, those in flight finish");
    bool drained = false;
    {
      const BackgroundTask drain([&] { drained = app_.Drain(); });
      while (!drain.done()) {
        pollfd watched[] = {{signals_.fd(), POLLIN, 0}, {drain.done_fd(), POLLIN, 0}};
        poll(watched, 2, kForEver);
        TakeSignals();
      }
    }
    app_.log().Info(drained ? "stopped" : "stopped; calls that took too long were cut off");
    return drained;
  }

  void TakeSignals() {
    while (const auto request = signals_.Next()) {
      if (request->parent_ended) continue;
      if (signalled_) _exit(128 + request->signal);
      signalled_ = true;
    }
  }

  App& app_;
  const StopCause cause_;
  const std::chrono::milliseconds drain_delay_;
  StopSignals& signals_;
  bool signalled_;
};

// Ends the process at once if the GPU is lost or a probe of the doctor hangs: destructors would
// wait for the device, or be run while the probe's thread goes on.
int ExitIfGpuHangs(App& app, int status) {
  const bool stopped = app.StopExamination();
  if (app.gpu_lost() || !stopped) _exit(status);
  return status;
}

// Loads the configured collections. A signal or restart during the load ends the process here.
absl::Status LoadUnlessStopped(App& app, std::chrono::milliseconds drain_delay,
                               StopSignals& signals, StartOutput& output) {
  absl::Status loaded;
  const auto announce = [&output](const engine::Snapshot& snapshot, Clock::Duration took) {
    output.Loaded(snapshot, took);
  };
  {
    const BackgroundTask load([&] { loaded = app.LoadCollections(announce); });
    if (const auto cause = AwaitLoad(app, load, signals, output)) {
      // A load cannot be cancelled and leaves nothing behind on disk, so the exit need not wait.
      _exit(Stop(app, *cause, drain_delay, signals).Run());
    }
  }
  return loaded;
}

}  // namespace

int RunServe(const ConfigReading& reading) {
  const Config& config = reading.config;
  StopSignals signals(config.die_with_parent);
  IgnoreBrokenPipes();
  RaiseDescriptorLimit(config.limits);

  StartOutput output({config.log_format, config.log_level, nullptr});
  const net::LibraryLogs library_logs(output.log());
  if (const std::string ignored = IgnoredVariables(reading); !ignored.empty()) {
    output.log().Info(
        "environment variables without effect here; `simile config --print` says more",
        {{"variables", ignored}});
  }
  auto created = App::Create(config);
  if (!created.ok()) {
    output.Failed(created.status());
    return EXIT_FAILURE;
  }
  App& app = **created;
  output.Starting(observe::GetBuildInfo(), app.backend(),
                  config.backend.preference != backend::Preference::kCpu);
  const auto drain_delay = config.limits.drain_delay;
  const absl::Status loaded = LoadUnlessStopped(app, drain_delay, signals, output);
  if (!loaded.ok()) {
    output.Failed(loaded);
    return ExitIfGpuHangs(app, EXIT_FAILURE);
  }
  output.Listening(app.address(), app.metrics_address());

  const StopCause cause = AwaitStop(app, nullptr, signals).value_or(StopCause::kSignal);
  const int status = Stop(app, cause, drain_delay, signals).Run();
  if (status == EXIT_SUCCESS && !app.load_under_way()) return ExitIfGpuHangs(app, status);
  _exit(status);  // destructors would wait for the load, or for the calls that took too long
}

}  // namespace simile::app
