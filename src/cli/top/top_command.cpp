#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "app/background_work.h"
#include "base/error_detail.h"
#include "cli/client_flags.h"
#include "cli/commands.h"
#include "cli/display_text.h"
#include "cli/error_details.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "cli/time_text.h"
#include "cli/top/interval_stats.h"
#include "cli/top/live_screen.h"
#include "cli/top/top_text.h"

namespace simile::cli {
namespace {

using std::chrono::milliseconds;
using top::IntervalStats;
using top::LiveScreen;

constexpr double kStatsTimeoutSeconds = 5;
constexpr milliseconds kIntervalDefault{1'000};
constexpr milliseconds kIntervalMin{100};
constexpr milliseconds kForEver{std::chrono::hours(24)};

struct TopFlags {
  ClientFlags client;
  std::optional<std::string> interval;
  std::optional<std::uint32_t> count;

  // REQUIRES: CheckTopFlags returned no error.
  milliseconds Interval() const {
    if (!interval) return kIntervalDefault;
    return std::chrono::duration_cast<milliseconds>(*ParseDuration(*interval));
  }
};

absl::Status CheckTopFlags(const TopFlags& flags) {
  if (!flags.interval) return absl::OkStatus();
  const auto interval = ParseDuration(*flags.interval);
  if (!interval.ok()) {
    return base::WithMessage(
        interval.status(), fmt::format("--interval: {}", std::string(interval.status().message())));
  }
  if (*interval >= kIntervalMin) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("--interval: \"{}\" is too short; give {} ms or more", *flags.interval,
                  kIntervalMin.count()));
}

// The error of a server without the switch says how that server is to be started. What a server
// refuses one caller stays as it is.
absl::Status WithAdvice(const absl::Status& status, const std::string& address) {
  if (DetailsOf(status).reason != base::InfoOf(base::ErrorReason::kAdminNotAllowed).name) {
    return status;
  }
  return base::WithMessage(
      status,
      fmt::format(
          "the server at {} does not let clients read its metrics; start it with "
          "`simile serve --allow-admin ...` (or \"server\": {{\"admin_allowed\": true}} in its "
          "configuration, or SIMILE_SERVER_ADMIN_ALLOWED=true)",
          address));
}

std::string Shown(const IntervalStats& stats, const TopFlags& flags, const std::string& address) {
  return flags.client.json ? TopJson(stats) : TopText(stats, address, StandardOutput());
}

// Prints one text for each interval, one after the other.
int PrintIntervals(const TopFlags& flags) {
  const Connection connection = Connect(flags.client, kStatsTimeoutSeconds);
  absl::StatusOr<v1::GetStatsResponse> earlier = connection.GetStats();
  auto next = std::chrono::steady_clock::now();
  for (std::uint32_t printed = 0; earlier.ok() && (!flags.count || printed < *flags.count);
       ++printed) {
    next += flags.Interval();
    std::this_thread::sleep_until(next);
    absl::StatusOr<v1::GetStatsResponse> later = connection.GetStats();
    if (later.ok()) {
      if (printed > 0 && !flags.client.json) fmt::print("\n");
      fmt::print("{}", Shown(top::Compare(*earlier, *later), flags, connection.address()));
      std::fflush(stdout);
    }
    earlier = std::move(later);
  }
  if (earlier.ok()) return kSucceeded;
  return Fail(WithAdvice(earlier.status(), connection.address()), flags.client.json);
}

// The view on a terminal: reads on a thread of its own, so that keys work while a server is silent.
class LiveView {
 public:
  explicit LiveView(const TopFlags& flags)
      : flags_(flags), connection_(Connect(flags.client, kStatsTimeoutSeconds)) {}

  // Returns the exit code.
  int Run() {
    const std::optional<std::uint32_t> count = flags_.count;
    for (std::uint32_t interval = 0; !count || interval <= *count; ++interval) {
      const auto next = std::chrono::steady_clock::now() + flags_.Interval();
      Read();
      if (!earlier_) return Fail(WithAdvice(problem_, connection_.address()), flags_.client.json);
      if (count && interval == *count) break;
      if (ShowUntil(next) == LiveScreen::Event::kQuit) return screen_.exit_code();
    }
    // The last picture stays.
    screen_.Leave();
    fmt::print("{}", Shown(*stats_, flags_, connection_.address()));
    return kSucceeded;
  }

 private:
  // Makes the next reading. Ends the program when the user quits.
  void Read() {
    absl::StatusOr<v1::GetStatsResponse> later;
    const app::BackgroundTask reading([&] { later = connection_.GetStats(); });
    while (true) {
      const LiveScreen::Event event = screen_.Await(reading.done_fd(), kForEver);
      if (event == LiveScreen::Event::kReady) break;
      if (event == LiveScreen::Event::kQuit) {
        screen_.Leave();
        std::_Exit(screen_.exit_code());  // the thread may wait for the server's answer
      }
      if (stats_) Draw();
    }
    problem_ = later.status();
    if (!later.ok()) return;
    stats_ = top::Compare(earlier_.value_or(v1::GetStatsResponse()), *later);
    earlier_ = *std::move(later);
  }
  // Shows the picture until the time of the next one, kTimeout, or until the user quits.
  LiveScreen::Event ShowUntil(std::chrono::steady_clock::time_point next) {
    while (true) {
      Draw();
      const auto left = std::chrono::ceil<milliseconds>(next - std::chrono::steady_clock::now());
      const LiveScreen::Event event = screen_.Await(-1, std::max(left, milliseconds(0)));
      if (event == LiveScreen::Event::kTimeout || event == LiveScreen::Event::kQuit) return event;
    }
  }
  void Draw() {
    const Terminal terminal = screen_.terminal();
    std::string text = TopText(*stats_, connection_.address(), terminal);
    if (!problem_.ok()) {
      const std::string problem =
          fmt::format("no answer, trying again: {}", std::string(problem_.message()));
      text.insert(0, Bold(Shortened(problem, terminal.width), terminal) + '\n');
    }
    screen_.Draw(top::FirstLines(text, screen_.height()));
  }

  const TopFlags& flags_;
  LiveScreen screen_;  // before the connection, whose threads inherit the blocked signals
  const Connection connection_;
  std::optional<v1::GetStatsResponse> earlier_;
  std::optional<IntervalStats> stats_;
  absl::Status problem_;  // of the last reading
};

int RunTop(const TopFlags& flags) {
  const bool live = StandardOutput().is_terminal && !flags.client.json;
  return live ? LiveView(flags).Run() : PrintIntervals(flags);
}

}  // namespace

void AddTopCommand(CommandLine& line) {
  auto flags = std::make_shared<TopFlags>();
  Command command = line.Add("top", "Watch what a server does: rates, latency, queue, memory");
  command
      .Text("--interval", flags->interval, "TIME",
            "The time between two pictures: 500ms, 2s (default 1s)")
      .Number("--count", flags->count, "N", "End after this many intervals", 1)
      .Check([flags] { return CheckTopFlags(*flags); });
  AddClientFlags(command, flags->client, fmt::format("default {:.0f}", kStatsTimeoutSeconds));
  command
      .Footer(
          "simile top --interval 2s\n"
          "simile top --count 1 --json\n"
          "The server must have been started with --allow-admin.\n"
          "On a terminal q or Ctrl-C ends the view; elsewhere, and with --json, the intervals are "
          "printed one after the other.")
      .Run([flags] { return RunTop(*flags); });
}

}  // namespace simile::cli
