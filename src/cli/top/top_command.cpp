#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "app/background_work.h"
#include "base/error_detail.h"
#include "base/file_descriptor.h"
#include "cli/client_flags.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/output_text.h"
#include "cli/quantity_text.h"
#include "cli/terminal.h"
#include "cli/top/interval_stats.h"
#include "cli/top/top_text.h"

namespace simile::cli {
namespace {

using std::chrono::milliseconds;
using top::IntervalStats;

// A picture that fills the terminal of standard output. Uses the alternate screen, so that the
// former content comes back afterwards. Reads keys without echo. The destructor restores the
// terminal; so does Ctrl-Z, while the program is stopped. REQUIRES: standard output is a terminal,
// and no other thread exists yet, because threads inherit the blocked signals.
class LiveScreen {
 public:
  LiveScreen();
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  // Replaces the picture. The first call enters the alternate screen.
  void Draw(const std::string& text);
  // Leaves the alternate screen. Idempotent; Draw enters it again.
  void Leave();

  // The terminal as it is now: its size may change at any time.
  Terminal terminal() const;
  std::size_t height() const;  // lines; 0: unknown

  enum class Event : std::uint8_t {
    kQuit,     // `q`, or a signal: see exit_code
    kRedraw,   // the size changed, or the program continues after Ctrl-Z
    kReady,    // the descriptor is readable
    kTimeout,  // no event within the time
  };
  // Waits for the first event.
  //   ready_fd  -1 for none
  Event Await(int ready_fd, milliseconds timeout);
  // After kQuit: 0 for `q`; for a signal, the code that a shell reports for it.
  int exit_code() const { return exit_code_; }

 private:
  void Enter();
  std::optional<Event> ReadSignal();
  std::optional<Event> ReadKey();
  void Stop();  // stops the program as Ctrl-Z does, until it is continued

  base::FileDescriptor signals_;
  std::optional<termios> former_mode_;  // of the keyboard, while the picture is shown
  bool active_ = false;
  bool keys_readable_ = true;
  int exit_code_ = 0;
};

// Control sequences of xterm and compatible terminals.
constexpr const char* kEnterScreen = "\x1b[?1049h\x1b[?25l";  // alternate screen, no cursor
constexpr const char* kLeaveScreen = "\x1b[?25h\x1b[?1049l";
constexpr const char* kHome = "\x1b[H";
constexpr const char* kEraseLine = "\x1b[K";
constexpr const char* kEraseBelow = "\x1b[J";

sigset_t HandledSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH}) {
    sigaddset(&signals, signal);
  }
  return signals;
}

LiveScreen::LiveScreen() {
  const sigset_t signals = HandledSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signals_ = base::FileDescriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

LiveScreen::~LiveScreen() {
  Leave();
  const sigset_t signals = HandledSignals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

void LiveScreen::Enter() {
  if (active_) return;
  termios mode{};
  if (tcgetattr(STDIN_FILENO, &mode) == 0) {
    former_mode_ = mode;
    mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    mode.c_cc[VMIN] = 1;
    mode.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &mode);
  }
  base::WriteAll(STDOUT_FILENO, kEnterScreen);
  active_ = true;
}

void LiveScreen::Leave() {
  if (!active_) return;
  base::WriteAll(STDOUT_FILENO, kLeaveScreen);
  // Discards unread keys, which are not meant for the shell.
  if (former_mode_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &*former_mode_);
  former_mode_.reset();
  active_ = false;
}

void LiveScreen::Draw(const std::string& text) {
  Enter();
  std::string picture = kHome;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    if (from > 0) picture += "\r\n";  // none after the last line, which would scroll the screen
    picture.append(text, from, end - from).append(kEraseLine);
    from = end + 1;
  }
  picture += kEraseBelow;
  base::WriteAll(STDOUT_FILENO, picture);
}

Terminal LiveScreen::terminal() const { return StandardOutput(); }

std::size_t LiveScreen::height() const {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

LiveScreen::Event LiveScreen::Await(int ready_fd, milliseconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Event::kTimeout;
    // poll skips negative descriptors.
    pollfd watched[] = {{signals_.get(), POLLIN, 0},
                        {keys_readable_ ? STDIN_FILENO : -1, POLLIN, 0},
                        {ready_fd, POLLIN, 0}};
    if (poll(watched, 3, static_cast<int>(left.count())) <= 0) continue;
    if (watched[0].revents != 0) {
      if (const auto event = ReadSignal()) return *event;
    }
    if (watched[1].revents != 0) {
      if (const auto event = ReadKey()) return *event;
    }
    if (watched[2].revents != 0) return Event::kReady;
  }
}

std::optional<LiveScreen::Event> LiveScreen::ReadSignal() {
  signalfd_siginfo info{};
  if (read(signals_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  const auto signal = static_cast<int>(info.ssi_signo);
  if (signal == SIGTSTP) Stop();
  if (signal == SIGTSTP || signal == SIGWINCH) return Event::kRedraw;
  exit_code_ = 128 + signal;
  return Event::kQuit;
}

std::optional<LiveScreen::Event> LiveScreen::ReadKey() {
  char key = 0;
  if (read(STDIN_FILENO, &key, 1) != 1) {
    keys_readable_ = false;  // standard input has ended, so watches only signals
    return std::nullopt;
  }
  if (key != 'q' && key != 'Q') return std::nullopt;
  exit_code_ = 0;
  return Event::kQuit;
}

void LiveScreen::Stop() {
  Leave();
  raise(SIGSTOP);
}

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

// Adds to the error of a server without --allow-admin how to start it. Leaves the error for a
// caller without the role unchanged.
absl::Status WithAdvice(const absl::Status& status, const std::string& address) {
  if (ParseDetails(status).reason != base::InfoOf(base::ErrorReason::kAdminNotAllowed).name) {
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

// Prints one text per interval.
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

// The view on a terminal. Reads the metrics on another thread, so that keys work while a server is
// silent.
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
    // Prints the last picture, so that it stays on the screen.
    screen_.Leave();
    fmt::print("{}", Shown(*stats_, flags_, connection_.address()));
    return kSucceeded;
  }

 private:
  // Makes the next reading. Ends the program if the user quits.
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
  // Shows the picture until the next one is due (returns kTimeout) or the user quits.
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
