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
#include <vector>

#include "app/background_work.h"
#include "app/config/config_check.h"
#include "app/reloads.h"
#include "app/server_signals.h"
#include "app/start_output.h"
#include "app/wiring.h"
#include "observe/build_info.h"
#include "service/calls/call.h"
#include "service/grpc/rpc_services.h"

namespace simile::app {
namespace {

constexpr int kProgressTickMs = 100;
constexpr int kForEver = -1;
// EX_TEMPFAIL of sysexits.h: after a restart the GPU may work again.
constexpr int kExitForRestart = 75;

// A write to a closed connection then fails with an error and does not end the process.
void IgnoreBrokenPipes() { std::signal(SIGPIPE, SIG_IGN); }

void LogVariables(const std::vector<VariableEffect>& effects, const observe::Logger& log) {
  for (const VariableEffect& each : effects) {
    if (!each.has_changed) continue;
    log.Info("environment variable read", {{"variable", each.name},
                                           {"value", each.value},
                                           {"reader", each.reader},
                                           {"effect", each.effect}});
  }
  if (const std::string read = VariablesWithoutChange(effects); !read.empty()) {
    log.Info("environment variables read that change nothing", {{"variables", read}});
  }
  if (const std::string ignored = IgnoredVariables(effects); !ignored.empty()) {
    log.Info("environment variables without effect here; `simile config --print` says more",
             {{"variables", ignored}});
  }
}

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

// Waits for a signal to stop, the end of the parent, a requested restart or the end of the load,
// whichever comes first. Meanwhile draws the load's progress, and reloads on request. Returns
// nothing when the load has ended.
//   load  of the start; may be null
std::optional<StopCause> AwaitStop(const App& app, ServerSignals& signals, Reloads& reloads,
                                   StartOutput& output, const BackgroundTask* load) {
  const bool draws = load != nullptr && output.draws_progress();
  while (true) {
    if (draws) output.DrawProgress(app.store().List());
    if (load == nullptr) reloads.Advance();
    pollfd watched[] = {{signals.fd(), POLLIN, 0},
                        {app.restart_fd(), POLLIN, 0},
                        {load != nullptr ? load->done_fd() : reloads.done_fd(), POLLIN, 0}};
    poll(watched, 3, draws ? kProgressTickMs : kForEver);
    if (const auto request = signals.Next()) {
      if (request->kind == ServerSignals::Kind::kStop) return StopCause::kSignal;
      if (request->kind == ServerSignals::Kind::kParentEnded) return StopCause::kParentEnded;
      reloads.Request();
    }
    if (watched[1].revents != 0) return StopCause::kRestart;
    if (load != nullptr && load->done()) return std::nullopt;
  }
}

// Ends the process without destructors. They would wait for calls that took too long, for a load
// and for a GPU that hangs.
[[noreturn]] void ExitAtOnce(const observe::Logger& log, int status) {
  log.Flush();
  _exit(status);
}

// The stop of a server. A second signal ends the process at once, with 128 + its number.
class Stop {
 public:
  Stop(App& app, StopCause cause, std::chrono::milliseconds drain_delay, ServerSignals& signals)
      : app_(app),
        cause_(cause),
        drain_delay_(drain_delay),
        signals_(signals),
        signalled_(cause == StopCause::kSignal) {}

  // Returns the exit status.
  int Run() {
    LogCause();
    // No delay where health has never said that this server serves. After the loss of a GPU the CPU
    // answers during the delay.
    if (app_.AnnounceDrain()) AwaitDelay();
    Drain();
    // A signal after the loss of the GPU asks for an end, not for a restart.
    return cause_ == StopCause::kRestart && !signalled_ ? kExitForRestart : EXIT_SUCCESS;
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

  void Drain() {
    app_.log().Info("stopping: no new calls, those in flight finish");
    bool drained = false;
    const auto drain = [&] {
      static_cast<void>(service::Guarded([&] { drained = app_.Drain(); }));  // else not drained
    };
    std::optional<BackgroundTask> draining;
    const absl::Status begun = service::Guarded([&] { draining.emplace(drain); });
    if (!begun.ok()) drain();  // without a thread for it signals wait
    while (draining && !draining->done()) {
      pollfd watched[] = {{signals_.fd(), POLLIN, 0}, {draining->done_fd(), POLLIN, 0}};
      poll(watched, 2, kForEver);
      TakeSignals();
    }
    draining.reset();
    app_.log().Info(drained ? "stopped" : "stopped; calls that took too long were cut off");
  }

  void TakeSignals() {
    while (const auto request = signals_.Next()) {
      if (request->kind == ServerSignals::Kind::kReload) {
        app_.log().Info("SIGHUP ignored: the server stops");
      }
      if (request->kind != ServerSignals::Kind::kStop) continue;
      if (signalled_) ExitAtOnce(app_.log(), 128 + request->signal);
      signalled_ = true;
    }
  }

  App& app_;
  const StopCause cause_;
  const std::chrono::milliseconds drain_delay_;
  ServerSignals& signals_;
  bool signalled_;
};

// Loads the configured collections. A signal or restart during the load ends the process here.
absl::Status LoadUnlessStopped(App& app, std::chrono::milliseconds drain_delay,
                               ServerSignals& signals, Reloads& reloads, StartOutput& output) {
  absl::Status loaded;
  const auto announce = [&output](const engine::Snapshot& snapshot, Clock::Duration took) {
    output.Loaded(snapshot, took);
  };
  {
    const BackgroundTask load([&] {
      const absl::Status ended = service::Guarded([&] { loaded = app.LoadCollections(announce); });
      loaded.Update(ended);
    });
    const auto cause = AwaitStop(app, signals, reloads, output, &load);
    output.ClearProgress();
    // A load cannot be cancelled and leaves nothing behind on disk, so the exit need not wait.
    if (cause) ExitAtOnce(app.log(), Stop(app, *cause, drain_delay, signals).Run());
  }
  return loaded;
}

}  // namespace

void RunServe(const ConfigReading& reading) {
  const Config& config = reading.config;
  ServerSignals signals(config.die_with_parent);
  IgnoreBrokenPipes();
  RaiseDescriptorLimit(config.limits);

  const observe::Logger log({config.log_format, config.log_level, nullptr});
  StartOutput output(config.log_format, log);
  const service::LibraryLogs library_logs(log);
  LogVariables(DescribeEffects(reading), log);
  auto created = App::Create(config, log);
  if (!created.ok()) {
    output.Failed(created.status());
    ExitAtOnce(log, EXIT_FAILURE);
  }
  App& app = **created;
  output.Starting(observe::GetBuildInfo(), app.backend(),
                  config.backend.preference != backend::Preference::kCpu);
  const auto drain_delay = config.limits.drain_delay;
  Reloads reloads([&app] { app.ReloadChanged(); }, log);
  const absl::Status loaded = LoadUnlessStopped(app, drain_delay, signals, reloads, output);
  if (!loaded.ok()) {
    output.Failed(loaded);
    ExitAtOnce(log, EXIT_FAILURE);
  }
  output.Listening(app.address(), app.metrics_address());

  const StopCause cause =
      AwaitStop(app, signals, reloads, output, nullptr).value_or(StopCause::kSignal);
  ExitAtOnce(log, Stop(app, cause, drain_delay, signals).Run());
}

}  // namespace simile::app
